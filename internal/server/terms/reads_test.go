package terms_test

import (
	"slices"
	"testing"

	"scrimp/internal/job/spec"
	"scrimp/internal/lib/size"
	"scrimp/internal/market/catalog"
	"scrimp/internal/server/terms"
)

func TestReads_AreInputsInARegion(t *testing.T) {
	j := spec.Job{Data: []spec.Data{{Path: "./corpus", Size: size.GB, Region: "us-east-1"},
		{Path: "s3://b/nowhere", Size: size.GB}, {Path: "s3://b/c", Size: 200 * size.GB, Region: "us-east-1"}}}
	kinds := map[string]string{"aws": "aws", "aws-2": "aws", "lab": "ssh", "hpc": "slurm"}
	list := terms.Reads(j, catalog.Catalog{}, kinds)
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	r := list[0]
	if r.Path != "s3://b/c" || r.Bytes != 200e9 || r.Provider != "aws" || r.Region != "us-east-1" ||
		!slices.Equal(r.Sellers, []string{"aws-2"}) || !slices.Equal(r.Own, []string{"hpc", "lab"}) {
		t.Errorf("%+v", r)
	}
	if list := terms.Reads(spec.Job{}, catalog.Catalog{}, kinds); list != nil {
		t.Errorf("a job without data reads %+v", list)
	}
}
