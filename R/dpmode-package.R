#' @keywords internal
#' @importFrom graphics plot
#' @importFrom stats coef confint fitted formula logLik model.frame nobs predict residuals update vcov
"_PACKAGE"

# ggplot2's pronoun, used in the pictures when that package is there.
utils::globalVariables(".data")
