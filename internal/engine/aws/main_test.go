//go:build !local

package aws

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"

	"scrimp/internal/test/awstest"
)

// largeCloud makes the test's program a cloud of a full account, until its input ends: what a driver needs of the
// processor and of memory is then its own.
const largeCloud = "SCRIMP_TEST_LARGE_CLOUD"

func TestMain(m *testing.M) {
	if os.Getenv(largeCloud) == "" {
		os.Exit(m.Run())
	}
	if err := serveLarge(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serveLarge() error {
	types, zones := awstest.Large(largeTypes, largeZones)
	c, err := awstest.New(awstest.Options{Types: types, Zones: zones, Spot: map[awstest.Pool][]awstest.Price{}})
	if err != nil {
		return err
	}
	defer c.Close()
	if err := json.NewEncoder(os.Stdout).Encode([]string{c.URL, c.Key, c.Secret}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
