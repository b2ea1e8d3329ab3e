library(testthat)
library(dpmode)

test_check("dpmode")
