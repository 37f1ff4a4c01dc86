"""`python -m handrail.cli` is the command `handrail`."""

import sys

from handrail.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
