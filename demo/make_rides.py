"""Writes rides.csv: a year of a made-up bicycle hire scheme, the same every time.

    python3 demo/make_rides.py > demo/rides.csv

Hires follow the season, the weather and the week, with chance on top, so the
report has something true to find. Only the standard library's generator is
used: its sequence for a seed is the same on every Python.
"""

import csv
import datetime
import math
import random
import sys

SEED = 1817  # the year of the first bicycle ride, Mannheim to Schwetzingen and back
START = datetime.date(2023, 1, 1)


def rides():
    rng = random.Random(SEED)
    weather = 0.0  # today's deviation from the season, in degrees: weather lasts for days
    for day in range(365):
        date = START + datetime.timedelta(days=day)
        weather = 0.7 * weather + rng.gauss(0, 2.3)
        summer = 0.5 - 0.5 * math.cos(2 * math.pi * (day - 20) / 365)
        temperature = 1.5 + 19.0 * summer + weather
        rain = round(rng.expovariate(1 / 5.5), 1) if rng.random() < 0.34 else 0.0
        weekend = date.weekday() >= 5

        level = 420 + 38 * max(0.0, temperature) - 0.55 * max(0.0, temperature - 22) ** 3
        level *= 0.96 ** min(rain, 20)
        commuters = level * (0.34 if weekend else 0.60)
        visitors = level * (0.66 if weekend else 0.40) * (0.25 + summer)
        yield {
            "date": date.isoformat(),
            "temperature_c": round(temperature, 1),
            "rain_mm": rain,
            "members": max(12, round(commuters * rng.gauss(1, 0.06))),
            "visitors": max(5, round(visitors * rng.gauss(1, 0.11))),
        }


if __name__ == "__main__":
    rows = list(rides())
    out = csv.DictWriter(sys.stdout, fieldnames=list(rows[0]), lineterminator="\n")
    out.writeheader()
    out.writerows(rows)
