"""Use scikit-learn's own tools: stack the views into one table, and say which columns are which view."""

from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coview import TMvKSCR, stack_views
from coview.datasets import digits_views

views, digits = digits_views()
X, columns = stack_views(views.take(slice(0, 600)))  # columns: {'pixels': slice(0, 64), ...}
digits = digits[:600]

# With a list of views, cross-validation would split the list. With one stacked table it splits the samples.
search = GridSearchCV(
    make_pipeline(StandardScaler(), TMvKSCR(10, views=columns, random_state=0)),
    {"tmvkscr__rho": [0.25, 1.0]},
    scoring="adjusted_rand_score",  # known classes, for a benchmark; real clustering has none
    cv=2,
)
search.fit(X, digits)
print(search.best_params_, round(search.best_score_, 3))
