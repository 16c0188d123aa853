//go:build !local

package aws

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"scrimp/internal/test/awstest"
	"scrimp/internal/test/must"
)

// setUp creates in a site's account what the module creates, as far as the site supports it, and returns the module's
// outputs.
func setUp(t *testing.T, s *site) map[string]any {
	t.Helper()
	a, err := s.driver().connected(t.Context())
	must.Do(t, err)
	list, err := a.EC2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
	must.Do(t, err)
	var subnets []string
	for _, n := range list.Subnets[:3] {
		subnets = append(subnets, *n.SubnetId)
	}
	group, err := a.EC2.CreateSecurityGroup(t.Context(), &ec2.CreateSecurityGroupInput{GroupName: sdk.String("machines"),
		Description: sdk.String("machines"), VpcId: list.Subnets[0].VpcId})
	must.Do(t, err)
	template, err := a.EC2.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: sdk.String("machines"), LaunchTemplateData: &types.RequestLaunchTemplateData{
			InstanceInitiatedShutdownBehavior: types.ShutdownBehaviorTerminate}})
	must.Do(t, err)
	return map[string]any{"installation": "aws", "bucket": "s3://ckpt?region=us-east-1", "subnets": subnets,
		"security_group": *group.GroupId, "launch_template": *template.LaunchTemplate.LaunchTemplateId,
		"server_role": "arn:aws:iam::" + a.Account + ":role/aws-scrimp-server", "job_role": jobRole, "server": nil}
}

// printed returns what Terraform prints for an output that contains the module.
func printed(t *testing.T, values map[string]any) []byte {
	t.Helper()
	b, err := json.Marshal(map[string]any{"other": map[string]any{"value": 3},
		"scrimp": map[string]any{"sensitive": false, "value": values}})
	must.Do(t, err)
	return b
}

// compare returns the failed findings by name.
func compare(t *testing.T, s *site, text []byte) map[string]string {
	t.Helper()
	found, err := s.driver().Compare(t.Context(), text)
	must.Do(t, err)
	wrong := map[string]string{}
	for _, f := range found {
		if !f.OK {
			wrong[strings.TrimPrefix(f.Name, "made: ")] = f.Text
		}
	}
	return wrong
}

// Compare confirms settings and an account that match the module, whichever way its outputs are printed, and reports
// each difference with the fix.
func TestCompare_FindsDifferencesFromTheModule(t *testing.T) {
	s := newSite(t, awstest.Options{Public: true})
	values := setUp(t, s)
	s.with.Subnets, s.with.SecurityGroup = values["subnets"].([]string), values["security_group"].(string)
	s.with.Store, s.with.JobRole = "s3://ckpt?prefix=team", jobRole
	root, stack := map[string]any{}, []map[string]string{}
	for name, v := range values {
		root[name] = map[string]any{"value": v}
		if list, ok := v.([]string); ok {
			v = strings.Join(list, ",")
		}
		if v == nil {
			continue
		}
		var key strings.Builder
		for word := range strings.SplitSeq(name, "_") {
			key.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
		stack = append(stack, map[string]string{"OutputKey": key.String(), "OutputValue": v.(string)})
	}
	rooted, err := json.Marshal(root)
	must.Do(t, err)
	stacked, err := json.Marshal(stack)
	must.Do(t, err)
	for _, text := range [][]byte{printed(t, values), rooted, stacked} {
		if wrong := compare(t, s, text); len(wrong) > 0 {
			t.Errorf("%s: %v", text, wrong)
		}
	}
	for _, c := range []struct{ output, value, finding, says string }{
		{"installation", "team-a", "settings", `installation = "aws"`},
		{"security_group", "sg-0123", "settings", "write security_group: sg-0123 under with"},
		{"security_group", "sg-0123", "security group", "InvalidGroup"},
		{"bucket", "s3://other?region=us-east-1", "store", "s3://other?region=us-east-1: write that one"},
		{"bucket", "s3://ckpt?region=eu-west-1", "store", "eu-west-1: write that one"},
		{"job_role", "arn:aws:iam::123456789012:role/new", "store", "role/new: write that one"},
		{"server_role", "arn:aws:iam::210987654321:role/x", "role", "use the account's credentials"},
		{"launch_template", "lt-0123", "launch template", "InvalidLaunchTemplateId"},
		{"server", "i-0123456789abcdef0", "server", "InvalidInstanceID"},
	} {
		changed := maps.Clone(values)
		changed[c.output] = c.value
		if wrong := compare(t, s, printed(t, changed)); !strings.Contains(wrong[c.finding], c.says) {
			t.Errorf("%s is %s: %v", c.output, c.value, wrong)
		}
	}
	s.with.Subnets = s.with.Subnets[:2]
	slices.Reverse(s.with.Subnets)
	if wrong := compare(t, s, printed(t, values)); !strings.Contains(wrong["settings"], "write subnets: [") {
		t.Errorf("%v", wrong)
	}
	a, err := s.driver().connected(t.Context())
	must.Do(t, err)
	if _, err := a.EC2.AuthorizeSecurityGroupIngress(t.Context(), &ec2.AuthorizeSecurityGroupIngressInput{
		GroupId: &s.with.SecurityGroup, IpPermissions: []types.IpPermission{{IpProtocol: sdk.String("tcp"),
			FromPort: sdk.Int32(22), ToPort: sdk.Int32(22),
			IpRanges: []types.IpRange{{CidrIp: sdk.String("0.0.0.0/0")}}}}}); err != nil {
		t.Fatal(err)
	}
	if wrong := compare(t, s, printed(t, values)); !strings.Contains(wrong["security group"], "lets others in") {
		t.Errorf("%v", wrong)
	}
}

// Compare refuses other outputs, with what they lack and how to get it.
func TestCompare_RefusesOtherOutputs(t *testing.T) {
	s := newSite(t, awstest.Options{})
	values := setUp(t, s)
	for name := range values {
		if name == "server" {
			continue
		}
		less := maps.Clone(values)
		delete(less, name)
		if _, err := s.driver().Compare(t.Context(), printed(t, less)); err == nil ||
			!strings.HasPrefix(err.Error(), "it has no "+name+":") {
			t.Errorf("without %s: %v", name, err)
		}
	}
	for _, text := range []string{"", "{}", "[]", "null", "3", `{"scrimp": 3}`, `{"scrimp": {"value": {"installation": 3}}}`,
		fmt.Sprintf("%s}", printed(t, values))} {
		if _, err := s.driver().Compare(t.Context(), []byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
