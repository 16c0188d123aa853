package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"scrimp/internal/market/marketfile"
)

// wantedName is the file of a data folder that names the market which the last scrimp serve of the folder could not
// read. Without it, the next command would open the market calm there, and the folder would keep that one.
const wantedName = "market.wanted"

// CheckMarket returns an error for a --market that cannot be read, before anything starts. A folder that has no market
// yet then keeps its name for the next command.
func CheckMarket(dir, file string) error {
	if file == "" {
		return nil
	}
	err := readable(file)
	if err != nil && !opened(dir) {
		path, wrong := filepath.Abs(file)
		if wrong == nil {
			wrong = os.MkdirAll(dir, 0o700)
		}
		if wrong == nil {
			wrong = os.WriteFile(filepath.Join(dir, wantedName), []byte(path+"\n"), 0o600)
		}
		if wrong != nil {
			return fmt.Errorf("%w (and the data folder does not keep the name of the market: %w)", err, wrong)
		}
	}
	return err
}

// ForgetMarket removes the name that CheckMarket kept, once a market serves the folder.
func ForgetMarket(dir string) { _ = os.Remove(filepath.Join(dir, wantedName)) }

// readable returns an error for a market file that does not parse.
func readable(file string) error {
	if _, err := marketfile.Load(file); err != nil {
		return fmt.Errorf("--market: %w", err)
	}
	return nil
}

// opened reports whether the folder has engines or a market.
func opened(dir string) bool {
	for _, name := range []string{"market", "engines.yaml"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// wantedMarket returns the market with which to start the folder's server: the given one, or the one that the last
// scrimp serve could not read, or "" for the folder's own.
func wantedMarket(dir, given string) (string, error) {
	if given != "" {
		return given, readable(given)
	}
	text, err := os.ReadFile(filepath.Join(dir, wantedName))
	if err != nil || opened(dir) {
		return "", nil //nolint:nilerr // without the file, the folder's own market is the right one
	}
	file := strings.TrimSpace(string(text))
	if err := readable(file); err != nil {
		return "", fmt.Errorf("this data folder has no market yet, and the last scrimp serve did not start with %w; correct "+
			"the file, or choose another with scrimp run --market, such as --market calm", err)
	}
	return file, nil
}
