"""Use scikit-learn's pipelines and grid searches: stack the views into one array and pass its layout as `views=`."""

from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coview import TMvKSCR, stack_views
from coview.datasets import digits_views

views, digits = digits_views()
X, columns = stack_views(views.take(slice(0, 600)))  # columns: {'pixels': slice(0, 64), ...}
digits = digits[:600]

# Cross-validation would split a list of views by view. It splits a stacked array by sample.
search = GridSearchCV(
    make_pipeline(StandardScaler(), TMvKSCR(10, views=columns, random_state=0)),
    {"tmvkscr__rho": [0.25, 1.0]},
    scoring="adjusted_rand_score",  # needs known classes
    cv=2,
)
search.fit(X, digits)
print(search.best_params_, round(search.best_score_, 3))
