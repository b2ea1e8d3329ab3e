echo <- function(x) dpmode:::call_python("echo", value = x)

frame_echo <- function(data) dpmode:::call_python("echo", value = dpmode:::wire_frame(data))

test_that("numbers come back to the last bit", {
  need_python()
  x <- c(pi, -0.0, .Machine$double.xmin, 2^-1074, .Machine$double.xmax, Inf, -Inf, 1 / 3)
  expect_identical(frame_echo(data.frame(x = x))$x, x)
  expect_identical(echo(2^40), 2^40)
  expect_identical(echo(-2147483647L), -2147483647L)
})

test_that("missing values stay missing, whatever the type", {
  need_python()
  back <- frame_echo(data.frame(
    int = c(1L, NA), lgl = c(TRUE, NA), num = c(1.5, NA), chr = c("a", NA), fct = factor(c("u", NA))
  ))
  # Whole numbers and logicals are numbers on the other side.
  expect_identical(is.na(back$int), c(FALSE, TRUE))
  expect_identical(back$int[1], 1)
  expect_identical(is.na(back$lgl), c(FALSE, TRUE))
  expect_identical(back$lgl[1], 1)
  expect_identical(is.na(back$num), c(FALSE, TRUE))
  expect_identical(as.character(back$chr), c("a", NA))
  expect_identical(back$fct, factor(c("u", NA)))
})

test_that("factors, dates and times keep their meaning", {
  need_python()
  data <- data.frame(
    f = factor(c("b", "a", NA, "b"), levels = c("b", "a", "unused")),
    o = factor(c("lo", "hi", "lo", NA), levels = c("lo", "hi"), ordered = TRUE),
    day = as.Date(c("2020-02-29", NA, "1969-12-31", "2262-01-01")),
    time = as.POSIXct(c("2020-03-01 12:00:00", NA, "1950-01-01", "2000-01-01"), tz = "UTC") + 0.25
  )
  back <- frame_echo(data)
  expect_identical(back$f, data$f)
  expect_identical(back$o, data$o)
  expect_identical(as.Date(back$day), data$day)
  expect_equal(as.numeric(back$time), as.numeric(data$time), tolerance = 0)
  expect_s3_class(back$time, "POSIXct")
})

test_that("text in any script, the text NA and the empty text are themselves", {
  need_python()
  latin <- iconv("caf\u00e9", "UTF-8", "latin1")
  data <- data.frame(x = c("\u00e4\u00df\u6f22\u5b57", "NA", "", latin, NA))
  expect_identical(as.character(frame_echo(data)$x), enc2utf8(data$x))
})

test_that("tables of 0 and 1 rows, and of no columns, arrive as they are", {
  need_python()
  expect_identical(dim(frame_echo(data.frame(x = numeric(), f = factor(character())))), c(0L, 2L))
  expect_identical(frame_echo(data.frame(x = 1.5)), data.frame(x = 1.5))
  expect_identical(dim(frame_echo(data.frame(row.names = 1:3))[0L]), c(0L, 0L))
})

test_that("tibbles and data.tables are data frames", {
  need_python()
  expect_identical(frame_echo(tibble::tibble(x = c(1, 2)))$x, c(1, 2))
  expect_identical(frame_echo(data.table::data.table(x = c(1, 2)))$x, c(1, 2))
})

test_that("what is no column of numbers is refused by name and type", {
  need_python()
  bounds <- list(x = c(0, 1))
  fit <- function(data) dp_modes(~x, data, bounds = bounds, epsilon = 1, delta = 1e-5)
  expect_error(fit(data.frame(x = c(1i, 2i))), "complex", class = "dpmode_NonNumericColumn")
  expect_error(fit(data.frame(x = I(list(1, 2)))), "AsIs|list", class = "dpmode_NonNumericColumn")
  expect_error(fit(data.frame(x = c("secret", "b"))), class = "dpmode_NonNumericColumn")
  message <- tryCatch(fit(data.frame(x = c("secret", "b"))), error = conditionMessage)
  expect_false(grepl("secret", message))
  expect_error(fit(tibble::tibble(x = structure(c(1, 2), class = "integer64"))), "as.numeric", class = "dpmode_NonNumericColumn")
  double <- data.frame(x = 1, x = 2, check.names = FALSE)
  expect_error(fit(double), class = "dpmode_DuplicateColumns")
})

test_that("a string of one row changes no other row's, whatever its encoding", {
  latin <- "caf\xe9"
  Encoding(latin) <- "latin1"
  unknown <- "z\xe9"
  Encoding(unknown) <- "bytes"
  ids <- c(latin, enc2utf8(latin), "a", latin, NA)
  alone <- as.integer(dpmode:::wire_column(ids, "id"))
  expect_identical(alone, c(1L, 1L, 2L, 1L, NA))
  for (odd in c(unknown, "q\xff", NA, "b")) {
    expect_identical(as.integer(dpmode:::wire_column(c(ids, odd), "id"))[1:5], alone)
    levels <- levels(dpmode:::wire_column(c(ids, odd), "id"))
    expect_true(all(validUTF8(levels)))
    expect_false(any(Encoding(levels) == "bytes"))
  }
  expect_identical(
    as.integer(dpmode:::wire_column(factor(c("q\xff", "q<ff>", "k", NA), levels = c("k", "q\xff", "q<ff>")), "id")),
    c(2L, 2L, 1L, NA)
  )
  # The level NA of addNA() is no value: such rows are missing.
  none <- dpmode:::wire_column(addNA(factor(c("b", NA, "", "b"))), "id")
  expect_identical(as.integer(none), c(2L, NA, 1L, 2L))
  expect_identical(levels(none), c("", "b"))
})

test_that("strings of unknown bytes reach Python", {
  need_python()
  unknown <- "z\xe9"
  Encoding(unknown) <- "bytes"
  back <- frame_echo(data.frame(id = c("a", unknown, "q\xff")))
  expect_identical(as.character(back$id), c("a", "z<e9>", "q<ff>"))
})
