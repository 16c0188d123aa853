package policy_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/engine/aws/policy"
)

var scope = policy.Scope{Account: "123456789012", Region: "eu-west-1", Installation: "team-a", Bucket: "ckpt",
	JobRole: "scrimp-job"}

func TestServer_LimitsChangesToTheInstallationsTag(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range policy.Server(scope).Statement {
		tagged := false
		for _, keys := range s.Condition {
			for key, values := range keys {
				tagged = tagged || strings.HasSuffix(key, "Tag/"+policy.Tag) && slices.Equal(values, []string{"team-a"})
			}
		}
		for _, a := range s.Action {
			seen[a] = true
			_, verb, _ := strings.Cut(a, ":")
			reads := strings.HasPrefix(verb, "Describe") || strings.HasPrefix(verb, "Get") || strings.HasPrefix(verb, "List")
			onAll := slices.Contains(s.Resource, "*")
			switch {
			case strings.Contains(a, "*") || strings.HasPrefix(a, "iam:"):
				t.Errorf("%s: %s", s.Sid, a)
			case onAll && !reads:
				t.Errorf("%s: %s on everything", s.Sid, a)
			case strings.HasPrefix(a, "ec2:") && !reads && s.Sid != "RentFrom" && s.Sid != "GroupIn" && !tagged:
				t.Errorf("%s: %s on what is not the installation's", s.Sid, a)
			case strings.HasPrefix(a, "s3:") && !strings.HasPrefix(s.Resource[0], "arn:aws:s3:::ckpt"):
				t.Errorf("%s: %s on %v", s.Sid, a, s.Resource)
			case a == "sts:AssumeRole" && !slices.Equal(s.Resource, []string{"arn:aws:iam::123456789012:role/scrimp-job"}):
				t.Errorf("%s: %v", s.Sid, s.Resource)
			}
		}
		if s.Sid == "GroupIn" && !slices.Equal(s.Resource, []string{"arn:aws:ec2:eu-west-1:123456789012:vpc/*"}) {
			t.Errorf("%s: %v", s.Sid, s.Resource) // security groups are created in a network, and have the tag themselves
		}
		if s.Sid == "RentFrom" { // without a condition: these actions alone create, end or cost nothing
			for _, r := range s.Resource {
				for _, made := range []string{":instance/", ":volume/", ":fleet/", ":launch-template/"} {
					if strings.Contains(r, made) {
						t.Errorf("RentFrom allows %s", r)
					}
				}
			}
		}
		if !slices.IsSorted(s.Action) || s.Effect != "Allow" || s.Sid == "" {
			t.Errorf("%+v", s)
		}
	}
	for _, a := range []string{"ec2:CreateFleet", "ec2:RunInstances", "ec2:CreateLaunchTemplate", "ec2:CreateTags",
		"ec2:TerminateInstances", "ec2:DeleteLaunchTemplate", "ec2:DeleteFleets", "pricing:GetProducts",
		"savingsplans:DescribeSavingsPlans", "servicequotas:GetServiceQuota", "ec2:GetSpotPlacementScores",
		"s3:PutObject", "sts:AssumeRole"} {
		if !seen[a] {
			t.Errorf("%s is not allowed", a)
		}
	}
}

func TestPrefix_ReachesOneJobOnly(t *testing.T) {
	d := policy.Prefix(scope, "/team/job-1/")
	for _, s := range d.Statement {
		text := strings.Join(s.Resource, " ")
		if len(s.Condition) > 0 {
			text += strings.Join(s.Condition["StringLike"]["s3:prefix"], " ")
		}
		if !strings.Contains(text, "team/job-1/*") || strings.Contains(text, "//") {
			t.Errorf("%+v", s)
		}
	}
	role := policy.Job(scope).Actions()
	for _, a := range d.Actions() {
		if !slices.Contains(role, a) {
			t.Errorf("%s is more than the role has", a)
		}
	}
	server := policy.Server(scope).Actions()
	for _, a := range role {
		if !slices.Contains(server, a) {
			t.Errorf("%s is more than the server has", a)
		}
	}
}

// The server only lists and reads an exported bill, and nothing beside its prefix.
func TestExport_ReadsItsPrefixOnly(t *testing.T) {
	scope := policy.Scope{Bucket: "my-exports"}
	list := policy.Export(scope, "cur/daily")
	d := policy.Document{Statement: list}
	if got := d.Actions(); !slices.Equal(got, []string{"s3:GetObject", "s3:ListBucket"}) {
		t.Errorf("%v", got)
	}
	if !slices.Equal(list[0].Resource, []string{"arn:aws:s3:::my-exports"}) ||
		!slices.Equal(list[0].Condition["StringLike"]["s3:prefix"], []string{"cur/daily/*"}) ||
		!slices.Equal(list[1].Resource, []string{"arn:aws:s3:::my-exports/cur/daily/*"}) {
		t.Errorf("%+v", list)
	}
	if whole := policy.Export(scope, ""); whole[0].Condition != nil || whole[1].Resource[0] != "arn:aws:s3:::my-exports/*" {
		t.Errorf("%+v", whole)
	}
}

func TestDocument_IsValidIAMJSON(t *testing.T) {
	for _, d := range []policy.Document{policy.Server(scope), policy.Job(scope), policy.Prefix(scope, "x"), policy.Trust(),
		policy.JobTrust("arn:aws:iam::123456789012:role/scrimp-server")} {
		var v map[string]any
		if err := json.Unmarshal([]byte(d.String()), &v); err != nil || v["Version"] != "2012-10-17" {
			t.Fatal(err, d)
		}
		if n := len(strings.Join(strings.Fields(d.String()), "")); n > 6144 { // IAM's limit for a managed policy
			t.Errorf("%d characters", n)
		}
	}
}
