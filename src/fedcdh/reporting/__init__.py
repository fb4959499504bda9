"""Result files, HTML report, plots, notebooks and data frames."""
