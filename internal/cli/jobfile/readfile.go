package jobfile

import (
	"fmt"
	"io"
	"os"

	"scrimp/internal/lib/size"
)

// ReadFile returns the contents of a file that a user names. It refuses a folder, and a file larger than most bytes.
func ReadFile(name string, most int64) (text []byte, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder, not a file", name)
	}
	text, err = io.ReadAll(io.LimitReader(f, most+1))
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%s has more than %s", name, size.Bytes(most))
	}
	return text, err
}
