"""The documentation site, built by `make docs`.

Nothing is loaded from elsewhere, neither while it is built nor while it is read: MathJax comes from
an installed package, and links to other projects' references (intersphinx) are off.
"""

import os
import re
import shutil
import sys
from importlib.metadata import distribution
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

import cmdplab  # noqa: E402

os.environ.pop("MPLBACKEND", None)  # notebooks would draw no figures
# Kernels of notebooks print a warning about their local connection: show only errors.
os.environ["IPYTHONDIR"] = str(HERE.parent / "build" / "ipython")
profile = HERE.parent / "build" / "ipython" / "profile_default"
profile.mkdir(parents=True, exist_ok=True)
(profile / "ipython_kernel_config.py").write_text('c.IPKernelApp.log_level = "ERROR"\n')

project, author, version = "cmdplab", "the cmdplab contributors", cmdplab.__version__
release, copyright = version, "the cmdplab contributors; MIT licence"  # noqa: A001
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "site_reference",
    "site_links",
]
exclude_patterns = ["_ext", "_static", "_templates", "schemas", "gallery/*.ipynb", "gallery/*.py"]
exclude_patterns += [
    "sg_execution_times.rst",
    "gallery/sg_execution_times.rst",
    "gallery/*.json",
    "gallery/*.md5",
    "gallery/*.zip",
]
templates_path = ["_templates"]
show_warning_types = True

# Pages
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "substitution"]
myst_substitutions = {"version": version}
myst_heading_anchors = 4
myst_links_external_new_tab = False
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 240
nb_execution_show_tb = True
nb_merge_streams = True

# Reference
default_role = "literal"  # docstrings write `name`
autosummary_generate = True
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_use_type_comments = False
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
add_module_names = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

# Gallery
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "gallery/uses",
    "doc_module": ("cmdplab",),
    "inspect_global_variables": False,
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "only_warn_on_example_error": False,
    "plot_gallery": True,
    "matplotlib_animations": False,
    "image_srcset": ["2x"],
    "copyfile_regex": r".*\.csv",
}


copybutton_selector = "div.highlight-python pre, div.highlight-sh pre, div.cell_input pre"
copybutton_selector += ", div.highlight-toml pre, div.highlight-bibtex pre, div.highlight-latex pre"
copybutton_copy_empty_lines = True


# Looks
def mathjax() -> str:
    """Copy what a browser needs of MathJax out of its package; return the folder of it."""
    into = HERE.parent / "build" / "mathjax"
    found = distribution("sphinx-mathjax-offline")
    for file in found.files or []:
        inside = str(file).partition("/static/")[2]
        if inside == "mathjax/tex-chtml.js" or "/woff-v2/" in inside:
            (into / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(str(found.locate_file(file)), into / inside)
    assert (into / "mathjax" / "tex-chtml.js").exists(), "sphinx-mathjax-offline holds no MathJax"
    return str(into)


mathjax_path = "mathjax/tex-chtml.js"
html_theme = "pydata_sphinx_theme"
html_title = "cmdplab"
html_static_path = ["_static", mathjax()]
html_css_files = ["site.css"]
html_favicon = "_static/mark.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {
        "image_light": "_static/mark.svg",
        "image_dark": "_static/mark.svg",
        "text": "cmdplab",
    },
    "navbar_align": "left",
    "external_links": [],
    "navbar_end": ["theme-switcher", "navbar-icon-links"],
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_with_keys": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "back_to_top_button": True,
}
html_sidebars = {"index": []}

# Links to the repository, once CITATION.cff has its address (CONTRIBUTING.md, Releasing).
citation = (HERE.parent / "CITATION.cff").read_text()
if address := re.search(
    r'^repository-code: "?(https://github\.com/([^/"\s]+)/([^/"\s]+))', citation, re.M
):
    html_theme_options |= {"github_url": address[1], "use_edit_page_button": True}
    html_theme_options["secondary_sidebar_items"] = ["page-toc", "edit-this-page"]
    html_context = {"github_user": address[2], "github_repo": address[3]}
    html_context |= {"github_version": "main", "doc_path": "docs"}
