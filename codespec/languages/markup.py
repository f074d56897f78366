"""HTML and what is like it: Vue, Svelte, HEEx, XML, and the templates of ERB, Handlebars, Django,
Jinja, Liquid and Twig."""

from __future__ import annotations

from codespec.languages.base import DOUBLE, NEVER, BlockComment, Language, Section

NO_SCRIPT = r"\btype=[\"']?(?!(?:text|application)/(?:java|type)script|module\b|text/babel)\w"
LANGUAGE = Language(
    name="markup",
    extensions=(
        *(".html", ".htm", ".xhtml", ".vue", ".svelte", ".xml", ".svg"),
        *(".heex", ".eex", ".leex", ".erb", ".hbs", ".handlebars"),
        *(".njk", ".jinja", ".j2", ".liquid", ".twig"),
    ),
    ids=(
        *("html", "vue", "svelte", "xml", "svg"),
        *("heex", "eelixir", "eruby", "erb", "handlebars"),
        *("htmldjango", "django-html", "jinja", "jinja-html", "liquid", "twig"),
    ),
    block_comments=(BlockComment("<!--", "-->"),),
    strings=(DOUBLE,),
    elements="markup",
    sections=(
        Section(element="script", extension=".js", dialects=("ts", "tsx"), unless=NO_SCRIPT),
        Section(element="style", extension=".css", dialects=("scss", "less", "sass", "stylus")),
    ),
    continues=NEVER,
    unfinished=NEVER,
)
