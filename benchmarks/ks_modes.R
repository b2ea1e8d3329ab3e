# Modes and clusters by kernel mean shift with the R package ks (kms). Not private.
#
#   Rscript ks_modes.R ROWS.csv FOLDER [plug-in|normal-scale]
#
# ROWS.csv: numbers without a header, one record a line. Written to FOLDER: modes.csv (a mode a line),
# labels.csv (a cluster of each record, from 1) and seconds.txt (processor time with the bandwidth).
# plug-in is the bandwidth that kms takes by itself; its cost grows so fast with the number of columns that the
# normal-scale rule for the gradient stands in for it in five and more.

arguments <- commandArgs(trailingOnly = TRUE)
if (!requireNamespace("ks", quietly = TRUE)) {
  message("The R package ks is missing: apt-get install r-cran-ks")
  quit(status = 3)
}
rows <- as.matrix(utils::read.csv(arguments[1], header = FALSE))
folder <- arguments[2]
selector <- if (length(arguments) > 2) arguments[3] else "plug-in"
stopifnot(selector %in% c("plug-in", "normal-scale"))

spent <- system.time({
  found <- if (selector == "plug-in") {
    ks::kms(rows)
  } else {
    ks::kms(rows, H = ks::Hns(rows, deriv.order = 1))
  }
})
save <- function(table, name) {
  utils::write.table(table, file.path(folder, name), sep = ",", row.names = FALSE, col.names = FALSE)
}
save(found$mode, "modes.csv")
save(found$label, "labels.csv")
save(spent[["user.self"]] + spent[["sys.self"]], "seconds.txt")
