"""HCL, as in Terraform; codespec has no grammar of it."""

from __future__ import annotations

from codespec.languages.base import (
    DOLLAR_BRACES,
    HASH,
    SLASH_STAR,
    SLASHES,
    Language,
    Quotes,
)

LANGUAGE = Language(
    name="hcl",
    extensions=(".tf", ".tfvars", ".hcl", ".nomad", ".tofu"),
    files=(".terraformrc", "terraform.rc"),
    ids=("terraform", "terraform-vars", "hcl", "opentofu"),
    line_comments=(HASH, SLASHES),
    block_comments=(SLASH_STAR,),
    strings=(Quotes('"', code=DOLLAR_BRACES),),
    heredocs=r"<<-?(?P<here>[A-Za-z_]\w*)(?=[ \t]*(?:\n|\Z))",
    documentation=("#", "//", "/*", "* ", "*/"),
)
