"""Write three views of the digits as files in different formats: the input of the commands in the README."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from coview.datasets import digits_views

views, _ = digits_views()
for folder, rows in {"digits": slice(0, 1500), "new-digits": slice(1500, None)}.items():
    part = views.take(rows)
    ids = [f"image{i}" for i in range(views.n_samples)[rows]]
    Path(folder).mkdir(exist_ok=True)
    header = ",".join(["image", *(f"pixel{j}" for j in range(64))])
    lines = [",".join([name, *map(repr, row)]) for name, row in zip(ids, part["pixels"].tolist(), strict=True)]
    Path(folder, "pixels.csv").write_text("\n".join([header, *lines]) + "\n")
    columns = {f"wave{j}": column for j, column in enumerate(part["fourier"].T.copy())}
    pa.parquet.write_table(pa.table({"image": ids, **columns}), f"{folder}/fourier.parquet")
    np.save(f"{folder}/gradients.npy", part["gradients"])
    print(f"{folder}: {part}")
