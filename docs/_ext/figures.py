"""Figures of the generated pages."""

import matplotlib.pyplot as plt

import posenc
import posenc.plot


def heatmap(name):
    """A convention's rows, as an image."""
    _, ax = plt.subplots(figsize=(7.0, 2.2))
    posenc.plot.heatmap(posenc.convention(name, 32), 64, ax=ax)
    ax.set_title("")  # it stands in the heading


def channels(name):
    """A grid's channels, each as an image of 9 lines of 12 points; of one frame, if there are frames."""
    entry = posenc.GRIDS[name]
    shape = (9, 12) if entry.axes is None or 2 in entry.axes else (5, 9, 12)
    dim = max(entry.multiple, 12 if entry.axes is None else 8)
    grid = posenc.grid(shape, dim, convention=name)
    images = grid if grid.ndim == 3 else grid[1]
    columns = 8
    _, axes = plt.subplots(-(-dim // columns), columns, figsize=(7.0, 1.0 * -(-dim // columns)), squeeze=False)
    for channel, ax in enumerate(axes.flat):
        if channel >= dim:
            ax.axis("off")
            continue
        ax.imshow(images[..., channel], vmin=-1.0, vmax=1.0, cmap="RdBu_r", interpolation="nearest")
        ax.set_title(f"{channel}", fontsize=8, pad=2)
        ax.set_xticks([])
        ax.set_yticks([])
