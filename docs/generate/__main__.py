"""Bring the parts of the pages that are made from the code up to date: python -m docs.generate"""

from __future__ import annotations

from docs.generate.parts import update

if __name__ == "__main__":
    for page in update():
        print(f"{page}: brought up to date")
