"""``python -m posenc``."""

from posenc._cli import main

raise SystemExit(main())
