// Package policy defines what a scrimp server may do in an AWS account, as values: tests compare the policies that
// scrimp doctor prints and those in deploy/terraform and deploy/cloudformation with it.
//
// Actions on machines, launch templates and the like are limited to resources with the installation's tag. Where IAM
// has no condition for an action (descriptions, prices), only reading is allowed.
package policy

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Tag is the key of the tag with a machine's engine. It is known before a server has ever run.
const Tag = "scrimp-engine"

// Scope limits the policy. A field may also be an expression of a template, such as ${AWS::AccountId}, which is
// inserted into names unchanged.
type Scope struct {
	Partition    string // aws, aws-cn, aws-us-gov; empty: aws
	Account      string // twelve digits
	Region       string // empty or *: all
	Installation string // the tag's value: the name of the engine
	Bucket       string // for checkpoints
	JobRole      string // name of the role that provides a job's credentials
}

// Document is an IAM policy.
type Document struct {
	Version   string
	Statement []Statement
}

// Statement allows actions on resources under conditions: operator, key, values.
type Statement struct {
	Sid       string
	Effect    string
	Action    []string
	Resource  []string                       `json:",omitempty"`
	Condition map[string]map[string][]string `json:",omitempty"`
	Principal map[string][]string            `json:",omitempty"` // only in trust policies
}

// version is the version of IAM's policy language.
const version = "2012-10-17"

// String returns the document as indented JSON.
func (d Document) String() string {
	b, _ := json.MarshalIndent(d, "", "  ") // texts and lists of texts: it cannot fail
	return string(b)
}

// Server returns the policy of the server's role.
func Server(s Scope) Document {
	tagged := map[string]map[string][]string{"StringEquals": {"aws:ResourceTag/" + Tag: {s.Installation}}}
	tagging := map[string]map[string][]string{"StringEquals": {"aws:RequestTag/" + Tag: {s.Installation}}}
	creating := map[string]map[string][]string{"StringEquals": {
		"aws:RequestTag/" + Tag: {s.Installation},
		"ec2:CreateAction": {"CreateFleet", "CreateLaunchTemplate", "CreatePlacementGroup", "CreateSecurityGroup",
			"CreateVolume", "RunInstances"},
	}}
	return Document{Version: version, Statement: []Statement{
		allow("Look", []string{"ec2:DescribeAvailabilityZones", "ec2:DescribeCapacityReservations",
			"ec2:DescribeFleetInstances", "ec2:DescribeFleets",
			"ec2:DescribeImages", "ec2:DescribeInstanceStatus", "ec2:DescribeInstanceTypeOfferings",
			"ec2:DescribeInstanceTypes", "ec2:DescribeInstances", "ec2:DescribeLaunchTemplateVersions",
			"ec2:DescribeLaunchTemplates", "ec2:DescribeNetworkInterfaces", "ec2:DescribePlacementGroups",
			"ec2:DescribeRegions", "ec2:DescribeReservedInstances", "ec2:DescribeSecurityGroups",
			"ec2:DescribeSpotInstanceRequests",
			"ec2:DescribeSpotPriceHistory", "ec2:DescribeSubnets", "ec2:DescribeTags", "ec2:DescribeVolumes",
			"ec2:GetSpotPlacementScores"}, all, nil),
		allow("Prices", []string{"pricing:DescribeServices", "pricing:GetProducts",
			"savingsplans:DescribeSavingsPlanRates", "savingsplans:DescribeSavingsPlans",
			"savingsplans:DescribeSavingsPlansOfferingRates", "servicequotas:GetServiceQuota"}, all, nil),
		allow("Template", []string{"ec2:CreateLaunchTemplate"}, s.ec2("launch-template/*"), tagging),
		allow("Group", []string{"ec2:CreatePlacementGroup", "ec2:CreateSecurityGroup"},
			s.ec2("placement-group/*", "security-group/*"), tagging),
		allow("GroupIn", []string{"ec2:CreateSecurityGroup"}, s.ec2("vpc/*"), nil),
		allow("Rent", []string{"ec2:CreateFleet", "ec2:RunInstances"},
			s.ec2("fleet/*", "instance/*", "volume/*"), tagging),
		// RunInstances checks these, which a machine is made of or attached to; nothing here is created.
		allow("RentFrom", []string{"ec2:CreateFleet", "ec2:RunInstances"}, slices.Concat(
			s.ec2("capacity-reservation/*", "network-interface/*", "placement-group/*", "security-group/*",
				"subnet/*"), s.images()), nil),
		allow("RentByTemplate", []string{"ec2:CreateFleet", "ec2:RunInstances"}, s.ec2("launch-template/*"), tagged),
		allow("TagWhatIsMade", []string{"ec2:CreateTags"},
			s.ec2("fleet/*", "instance/*", "launch-template/*", "network-interface/*", "placement-group/*",
				"security-group/*", "volume/*"), creating),
		allow("GiveBack", []string{"ec2:AuthorizeSecurityGroupIngress", "ec2:DeleteFleets", "ec2:DeleteLaunchTemplate",
			"ec2:DeleteNetworkInterface", "ec2:DeletePlacementGroup", "ec2:DeleteVolume", "ec2:TerminateInstances"},
			s.ec2("fleet/*", "instance/*", "launch-template/*", "network-interface/*", "placement-group/*",
				"security-group/*", "volume/*"), tagged),
		allow("ListCheckpoints", []string{"s3:GetBucketLocation", "s3:ListBucket", "s3:ListBucketMultipartUploads"},
			[]string{s.bucket("")}, nil),
		allow("KeepCheckpoints", objects, []string{s.bucket("/*")}, nil),
		allow("JobCredentials", []string{"sts:AssumeRole"}, []string{s.role(s.JobRole)}, nil),
	}}
}

// objects are the actions on checkpoints.
var objects = []string{"s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject",
	"s3:ListMultipartUploadParts", "s3:PutObject"}

var all = []string{"*"}

// Job returns the maximal policy of a job's role: AssumeRole restricts it to Prefix for each job.
func Job(s Scope) Document {
	return Document{Version: version, Statement: []Statement{
		allow("ListCheckpoints", []string{"s3:ListBucket"}, []string{s.bucket("")}, nil),
		allow("KeepCheckpoints", objects, []string{s.bucket("/*")}, nil),
	}}
}

// Prefix returns the session policy of one job's credentials: the objects below one prefix, given without a final
// slash. It allows only lists below the prefix: a list without the slash would show other keys that begin with the
// same letters.
func Prefix(s Scope, prefix string) Document {
	prefix = strings.Trim(prefix, "/")
	return Document{Version: version, Statement: []Statement{
		allow("ListCheckpoints", []string{"s3:ListBucket"}, []string{s.bucket("")},
			map[string]map[string][]string{"StringLike": {"s3:prefix": {prefix + "/*"}}}),
		allow("KeepCheckpoints", objects, []string{s.bucket("/" + prefix + "/*")}, nil),
	}}
}

// Export returns the statements that let the server list and read the keys of an exported bill. prefix is given without
// slashes at its ends; "" stands for the whole bucket.
func Export(s Scope, prefix string) []Statement {
	below, where := "/*", map[string]map[string][]string(nil)
	if prefix != "" {
		below = "/" + prefix + "/*"
		where = map[string]map[string][]string{"StringLike": {"s3:prefix": {prefix + "/*"}}}
	}
	return []Statement{
		allow("ListBills", []string{"s3:ListBucket"}, []string{s.bucket("")}, where),
		allow("ReadBills", []string{"s3:GetObject"}, []string{s.bucket(below)}, nil),
	}
}

// Trust says who may assume the server's role: EC2 machines.
func Trust() Document {
	return trust("Machines", map[string][]string{"Service": {"ec2.amazonaws.com"}})
}

// JobTrust says who may assume the job's role: the server's role.
func JobTrust(server string) Document {
	return trust("Server", map[string][]string{"AWS": {server}})
}

func trust(sid string, who map[string][]string) Document {
	s := allow(sid, []string{"sts:AssumeRole"}, nil, nil)
	s.Principal = who
	return Document{Version: version, Statement: []Statement{s}}
}

func allow(sid string, actions, resources []string, where map[string]map[string][]string) Statement {
	return Statement{Sid: sid, Effect: "Allow", Action: actions, Resource: resources, Condition: where}
}

func (s Scope) partition() string {
	if s.Partition == "" {
		return "aws"
	}
	return s.Partition
}

func (s Scope) region() string {
	if s.Region == "" {
		return "*"
	}
	return s.Region
}

func (s Scope) ec2(names ...string) []string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = "arn:" + s.partition() + ":ec2:" + s.region() + ":" + s.Account + ":" + n
	}
	return list
}

// images belong to their publishers, so their ARNs have no account.
func (s Scope) images() []string {
	return []string{"arn:" + s.partition() + ":ec2:" + s.region() + "::image/*",
		"arn:" + s.partition() + ":ec2:" + s.region() + "::snapshot/*"}
}

func (s Scope) bucket(rest string) string { return "arn:" + s.partition() + ":s3:::" + s.Bucket + rest }

func (s Scope) role(name string) string {
	return "arn:" + s.partition() + ":iam::" + s.Account + ":role/" + name
}

// Compact returns the document as JSON without white space: STS counts the characters of a session policy.
func (d Document) Compact() string {
	b, _ := json.Marshal(d) // texts and lists of texts: it cannot fail
	return string(b)
}

// Actions returns all actions that a document allows, sorted and unique.
func (d Document) Actions() []string {
	found := map[string]bool{}
	for _, s := range d.Statement {
		for _, a := range s.Action {
			found[a] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
