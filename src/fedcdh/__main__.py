"""python -m fedcdh"""

import sys

from fedcdh.cli import main

sys.exit(main())
