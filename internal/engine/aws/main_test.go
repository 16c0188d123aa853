//go:build !local

package aws

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"

	"scrimp/internal/test/awstest"
	"scrimp/internal/test/awstest/catalog"
)

// largeCloud turns the test program into a cloud with a full account, until its input ends, so that the processor
// time and memory of the test process are the driver's own.
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
	types, zones := catalog.Large(largeTypes, largeZones)
	c, err := awstest.New(awstest.Options{Types: types, Zones: zones, Spot: map[catalog.Pool][]catalog.Price{}})
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
