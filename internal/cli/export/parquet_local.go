//go:build local

package export

import (
	"context"
	"encoding/csv"
	"errors"
	"io"
)

var errNoParquet = errors.New("this program was built without Parquet (tag local): write .csv or .csv.gz, or make " +
	"build makes build/scrimp-full, which has it")

// parquetHere refuses: the library doubles the time of a first build.
func parquetHere() error { return errNoParquet }

func writeParquet(context.Context, io.Writer, []column, *csv.Reader) error { return errNoParquet }
