"""
Text and image embeddings: label new items
==========================================

Items of a shop or an archive often have two embeddings: one of the text and one of the picture. This tutorial clusters
items by both, and then labels items that arrive later, also items without a picture and items of an unknown kind.
"""

# %%
# Embeddings
# ----------
# Real embeddings come from a language model and a vision model. Here they are generated: 500 items of six topics. In
# the text, topics 0 and 1 are similar; in the pictures, topics 4 and 5.

import numpy as np

rng = np.random.default_rng(0)
text_topics, image_topics = rng.normal(size=(7, 64)), rng.normal(size=(7, 48))
text_topics[1] = text_topics[0] + 0.3 * rng.normal(size=64)
image_topics[5] = image_topics[4] + 0.3 * rng.normal(size=48)


def embed(topics, noise=1.3):
    """Return the embeddings of items of these topics, L2-normalised as most models return them."""
    views = {}
    for name, centres in {"text": text_topics, "image": image_topics}.items():
        rows = centres[topics] + noise * rng.normal(size=(len(topics), centres.shape[1]))
        views[name] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return views


topic = rng.integers(6, size=500)
views = embed(topic)

# %%
# Cluster
# -------

from sklearn.metrics import adjusted_rand_score

from coview import Coview, TMvKSCR

model = Coview(n_clusters="auto", random_state=0).fit(views)
print(model.reason_)

# %%
# The topics are known here, so the clusters can be compared with them; the model did not use them.

for name in views:
    alone = TMvKSCR(6, random_state=0).fit({name: views[name]})
    print(f"{name} alone: adjusted Rand index {adjusted_rand_score(topic, alone.labels_):.2f}")
print(f"both: adjusted Rand index {adjusted_rand_score(topic, model.labels_):.2f}")

# %%
# New items
# ---------
# ``predict`` uses only what was learnt at ``fit``: a new item has the same label alone and in any batch.

new_topic = rng.integers(6, size=60)
new = embed(new_topic)
labels = model.predict(new)
print(f"adjusted Rand index of new items: {adjusted_rand_score(new_topic, labels):.2f}")
print("one by one:", [int(model.predict({name: table[[i]] for name, table in new.items()})[0]) for i in range(5)])
print("together:  ", labels[:5].tolist())

# %%
# An item without a picture is labelled by its text, with a lower membership if the text does not decide.

text_only = {"text": new["text"]}
for name, part in {"text and image": new, "text only": text_only}.items():
    certain = model.predict_proba(part).max(axis=1)
    print(f"{name}: mean membership {certain.mean():.2f}, {np.mean(certain < 0.5):.0%} of the items are uncertain")

# %%
# Items of a kind that the training items do not contain have a low score, and can be refused.

unknown = embed(np.full(20, 6))
print("scores of known items:  ", np.quantile(model.score_samples(new), [0.1, 0.5]).round(2))
print("scores of unknown items:", np.quantile(model.score_samples(unknown), [0.5, 0.9]).round(2))
print("labels of unknown items:", model.predict(unknown, novel_below=0.01).tolist())

# %%
# The picture
# -----------
# New items on the map of the training items.

import matplotlib.pyplot as plt

from coview import plots, summarize

summary = summarize(model, views)
placed = summarize(model, new, on_map=summary.map)
figure, ax = plt.subplots(figsize=(7, 5.5), layout="constrained")
plots.sample_map(summary, ax=ax)
x, y = np.array(placed.points.positions).T
ax.scatter(x, y, s=30, facecolors="none", edgecolors="black", linewidths=0.9)
_ = ax.set_title(f"500 items in {model.n_clusters_} clusters, and 60 new items (circles)")
