"""The cells that every peer gets: code, and what its output has in it."""

CELL = ("print(2+2)", "4")
DESCRIBE = ('import pandas as pd\nprint(pd.DataFrame({"a": range(1000), "b": range(1000)}).describe())', "499.5")
PLOT = ("""\
import matplotlib.pyplot as plt
fig, ax = plt.subplots()
ax.plot([1, 2, 3, 4], [1, 4, 9, 16], label="squares")
ax.set_title("Squares")
ax.legend()
plt.show()
""", "image/png")
