//go:build !local

package aws

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"scrimp/internal/engine"
	"scrimp/internal/test/awstest"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
)

const aSpot = "aws/us-east-1a/c7i.xlarge/spot"

// If somebody removes a security group that scrimp created, the launch that finds it missing fails, and the next one
// creates it again.
func TestSecurityGroup_IsCreatedAgainAfterRemoval(t *testing.T) {
	d := newSite(t, awstest.Options{}).driver()
	list, err := d.Launch(t.Context(), engine.Request{Key: "one", Offer: aSpot})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	must.Do(t, d.Terminate(t.Context(), list[0].ID))
	a, err := d.connected(t.Context())
	must.Do(t, err)
	id, err := d.prepare.GroupNamed(t.Context(), a, onlyNetwork(t, d), "scrimp-aws")
	if err != nil || id == "" {
		t.Fatal(id, err)
	}
	eventually.True(t, "nothing is in it", func() bool {
		_, err = a.EC2.DeleteSecurityGroup(t.Context(), &ec2.DeleteSecurityGroupInput{GroupId: &id})
		return err == nil
	})
	_, err = d.Launch(t.Context(), engine.Request{Key: "two", Offer: aSpot})
	if err == nil || engine.Refused(err) || !strings.Contains(err.Error(), "security group is gone") {
		t.Fatalf("where it is gone: %v", err)
	}
	if list, err = d.Launch(t.Context(), engine.Request{Key: "two", Offer: aSpot}); err != nil || len(list) != 1 {
		t.Fatalf("asked again: %v, %v", list, err)
	}
}

func onlyNetwork(t *testing.T, d *Driver) string {
	t.Helper()
	x, err := d.indexed(t.Context())
	must.Do(t, err)
	return x.Zones["us-east-1a"].VPC
}

// A configured security group that does not exist is named with its field, by doctor and by a launch; so is an
// invalid id.
func TestSecurityGroup_IsNamedWhenMissing(t *testing.T) {
	s := newSite(t, awstest.Options{})
	s.with.SecurityGroup, s.with.Types = "sg-0a1b", append(s.with.Types, "z9.*")
	d := s.driver()
	if _, err := d.Launch(t.Context(), engine.Request{Key: "one", Offer: aSpot}); !errors.Is(err, engine.ErrRequest) ||
		!strings.Contains(err.Error(), "security_group under with") {
		t.Errorf("a launch: %v", err)
	}
	said := map[string]engine.Finding{}
	for _, f := range d.Examine(t.Context()) {
		said[f.Name] = f
	}
	if f := said["group"]; f.OK || !strings.Contains(f.Text, "security_group under with") {
		t.Errorf("%+v", f)
	}
	if f := said["types"]; !strings.Contains(f.Text, "z9.* under with.types matches no type in us-east-1") {
		t.Errorf("%+v", f)
	}
}
