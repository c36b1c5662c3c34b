"""A year of bicycle hires: what the weather and the week do to them.

Reads rides.csv, prints a table by month, writes chart.png and summary.csv.
"""

import matplotlib.dates as mdates
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

# Okabe and Ito's colours, told apart by every kind of eye.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#8C8C8C"

rides = pd.read_csv("rides.csv", parse_dates=["date"])
rides["total"] = rides["members"] + rides["visitors"]
rides["wet"] = rides["rain_mm"] >= 1.0

months = rides.groupby(rides["date"].dt.month)
summary = pd.DataFrame(
    {
        "hires": months["total"].sum(),
        "per_day": months["total"].mean().round().astype(int),
        "visitors_pct": (100 * months["visitors"].sum() / months["total"].sum()).round(1),
        "mean_temp_c": months["temperature_c"].mean().round(1),
        "wet_days": months["wet"].sum(),
    }
)
summary.index = pd.Index(
    pd.to_datetime(summary.index, format="%m").strftime("%b"), name="month"
)
summary.to_csv("summary.csv")

dry, wet = rides[~rides["wet"]], rides[rides["wet"]]
slope, base = np.polyfit(dry["temperature_c"], dry["total"], 1)
best = rides.loc[rides["total"].idxmax()]

print(summary.to_string())
print()
print(f"{rides['total'].sum():,} hires; the best day was {best['date']:%d %B} with {best['total']:,}.")
print(f"On dry days each degree brings {slope:.0f} more hires.")
print(f"Rain of a millimetre or more costs {1 - wet['total'].mean() / dry['total'].mean():.0%}.")

plt.rcParams.update(
    {
        "font.size": 10.5,
        "axes.titlesize": 12,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#E6E6E6",
        "axes.axisbelow": True,
    }
)
figure, (year, weather) = plt.subplots(
    1, 2, figsize=(12, 4.8), width_ratios=[1.35, 1], layout="constrained"
)

for column, colour in (("members", BLUE), ("visitors", ORANGE)):
    year.plot(rides["date"], rides[column], color=colour, lw=0.7, alpha=0.3)
    smooth = rides[column].rolling(14, center=True, min_periods=5).mean()
    year.plot(rides["date"], smooth, color=colour, lw=2.4, label=column.capitalize())
year.set_title("Members ride all year, visitors come with the summer")
year.set_ylabel("Hires per day")
year.xaxis.set_major_locator(mdates.MonthLocator(interval=2))
year.xaxis.set_major_formatter(mdates.DateFormatter("%b"))
year.set_xlim(rides["date"].iloc[0], rides["date"].iloc[-1])
year.set_ylim(bottom=0)
year.legend(title="14-day mean", frameon=False, loc="upper left")

weather.scatter(dry["temperature_c"], dry["total"], s=16, color=ORANGE, alpha=0.55, label="Dry day")
weather.scatter(
    wet["temperature_c"], wet["total"], s=18, color=BLUE, alpha=0.7, marker="^", label="1 mm of rain or more"
)
ends = np.array([dry["temperature_c"].min(), dry["temperature_c"].max()])
weather.plot(ends, base + slope * ends, color=GREY, lw=2, ls="--", label=f"{slope:+.0f} hires per °C")
weather.set_title("Warmth brings riders, rain sends them home")
weather.set_xlabel("Mean temperature (°C)")
weather.set_ylabel("Hires per day")
weather.set_ylim(bottom=0)
weather.legend(frameon=False, loc="upper left")

figure.get_layout_engine().set(w_pad=0.14, h_pad=0.12)
figure.savefig("chart.png", dpi=130)
