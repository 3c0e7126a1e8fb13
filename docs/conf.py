"""Settings of the documentation site; `make docs` builds it into build/site."""

import os
import re
import shutil
from inspect import getdoc
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import download_reference, pending_xref
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

import coview
from coview.model.clusterer import RECLUSTERS, Clusterer

os.environ["PYTHONWARNINGS"] = "ignore"  # of the processes that tutorials start

project = "coview"
author = "The coview developers"
copyright = author
release = version = coview.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "tutorials/*.ipynb", "tutorials/*.py"]
templates_path = ["_templates"]
default_role = "code"  # of single backticks in docstrings

# Markdown pages are also read on code hosts, so only the directives of the index pages are specific to the site.
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # numpydoc's sections describe the parameters
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # methods are on the page of the class, by the template
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = "coview"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "coview"},
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "search_bar_text": "Search the documentation",
}
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "faq": [], "search": []}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples/tutorials",
    "gallery_dirs": "tutorials",
    "filename_pattern": r"/\d\d_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "copyfile_regex": r".*\.html",
    "image_srcset": ["2x"],
    "only_warn_on_example_error": False,
    "abort_on_example_error": True,
}
suppress_warnings = ["config.cache"]  # sphinx-gallery's settings hold functions


class LinkPublicNames(SphinxTransform):
    """Link `Coview` and `Coview(6)` in code spans of any page to the page of the class."""

    default_priority = 500

    def apply(self) -> None:
        for literal in self.document.findall(nodes.literal):
            name = re.match(r"(?:coview\.)?([A-Za-z_]\w*)(?:\(.*\))?$", literal.astext(), re.DOTALL)
            if name and name[1] in coview.__all__ and not in_link_or_title(literal):
                target = f"coview.{name[1]}"
                link = pending_xref("", refdomain="py", reftype="obj", reftarget=target, refexplicit=True, refwarn=True)
                link["refdoc"] = self.env.docname
                literal.replace_self(link)
                link += literal


class LinkPagesOfOtherFolders(SphinxTransform):
    """Link to the pages of files outside of docs/, which Markdown pages refer to by their place in the project."""

    default_priority = 500
    PAGES = (
        (r".*examples/tutorials/(\w+)\.py", r"/tutorials/\1"),
        (r".*\.\./CONTRIBUTING\.md", "/contributing"),
        (r".*\.\./CHANGELOG\.md", "/changes"),
    )

    def apply(self) -> None:
        for download in list(self.document.findall(download_reference)):
            for file, page in self.PAGES:
                if found := re.fullmatch(file, download["reftarget"]):
                    link = pending_xref("", refdomain="std", reftype="doc", reftarget=found.expand(page), refwarn=True)
                    link["refexplicit"], link["refdoc"] = True, self.env.docname
                    link += download.children
                    download.replace_self(link)


def in_link_or_title(node: nodes.Node) -> bool:
    """Return whether a link must not be added here."""
    while node.parent is not None:
        node = node.parent
        if isinstance(node, (nodes.reference, pending_xref, nodes.title)):
            return True
    return False


def escape_plain_text(app: Sphinx, kind: str, name: str, member: object, options: object, lines: list[str]) -> None:
    """Turn docstrings, which are plain text for `help`, into reStructuredText before numpydoc reads them."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            spans = re.split(r"(`[^`]*`)", line)
            spans[::2] = [re.sub(r"\||(?<=\w)_(?!\w)", r"\\\g<0>", span) for span in spans[::2]]
            spans[::2] = [re.sub(r"docs/([\w/-]+)\.md", r":doc:`/\1`", span) for span in spans[::2]]
            lines[i] = "".join(spans)


def skip_members_that_users_do_not_call(
    app: Sphinx, kind: str, name: str, member: object, skip: bool, options: object
) -> bool | None:
    """Leave out what other libraries document, such as set_params, and methods for subclasses, which have one line."""
    function = getattr(member, "fget", member)
    module = getattr(function, "__module__", None) or "coview"
    if not module.startswith("coview"):
        return True
    owner = getattr(coview, app.env.docname.rpartition(".")[2], None)
    if not callable(member) or not (isinstance(owner, type) and issubclass(owner, Clusterer)):
        return None
    able = isinstance(owner.abilities, property) or name in owner.abilities or name not in RECLUSTERS
    return None if able and "Returns\n" in (getdoc(member) or "") else True  # methods for subclasses have one line


def copy_report(app: Sphinx, error: Exception | None) -> None:
    """Copy the report that a tutorial has written beside its page."""
    report = Path(app.srcdir, "../examples/tutorials/cohort/run/report.html")
    if error is None and report.exists():
        shutil.copy(report, Path(app.outdir, "tutorials", "cohort-report.html"))


def setup(app: Sphinx) -> None:
    """Add the links, and select and format the members on the pages of classes."""
    app.add_transform(LinkPublicNames)
    app.add_transform(LinkPagesOfOtherFolders)
    app.connect("autodoc-process-docstring", escape_plain_text, priority=100)
    app.connect("build-finished", copy_report)
    app.connect("autodoc-skip-member", skip_members_that_users_do_not_call)
