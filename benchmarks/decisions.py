"""The effect on labels of some differences from the authors' released program; prints the figures of docs/decisions.md.

Three views of 800 handwritten digits, 800 other digits as new samples; ten clusters, rho 0.25, kappa 3, 1, 1.
"""

from sklearn.metrics import adjusted_rand_score

from coview import RBF, Precomputed, TMvKSCR
from coview.datasets import digits_views

KAPPA = [3.0, 1.0, 1.0]
RHO = 0.25


def main() -> None:
    views, _ = digits_views()
    train, new = views.take(slice(0, 800)), views.take(slice(800, 1600))
    for assigner in ("codebook", "directions"):
        settings = {"kernel": RBF(), "kappa": KAPPA, "assigner": assigner, "random_state": 0}
        ours = TMvKSCR(10, rho=RHO, **settings).fit(train)
        # kappa in the product multiplies it by 3 · 1 · 1, which is equivalent to another rho.
        theirs = TMvKSCR(10, rho=RHO / (RHO + 3 * (1 - RHO)), **settings).fit(train)
        print(f"{assigner}: kappa also in the product, ARI {adjusted_rand_score(ours.labels_, theirs.labels_):.2f}")

        model = TMvKSCR(10, rho=RHO, beta=[k / 3 for k in KAPPA], **settings).fit(train)
        scored = model.transform(train, per_view=True)
        labels = model._assignment.assign(sum(scored.values()) / 3)  # scores of new samples without kappa
        print(f"{assigner}: kappa in training scores only, {(labels != model.labels_).mean():.0%} of labels change")

        kernels = {name: RBF().resolve(x) for name, x in train.items()}
        model = TMvKSCR(10, rho=RHO, kernel=Precomputed(), assigner=assigner, random_state=0)
        model.fit({name: kernels[name](x) for name, x in train.items()})
        cross = {name: kernels[name](new[name], x) for name, x in train.items()}
        mixed = {name: (k + k.T) / 2 for name, k in cross.items()}
        print(f"{assigner}: symmetrised, {(model.predict(cross) != model.predict(mixed)).mean():.0%} of labels change")


if __name__ == "__main__":
    main()
