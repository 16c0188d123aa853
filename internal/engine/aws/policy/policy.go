// Package policy says what a server of scrimp may do in an account of AWS, as values: the text that
// scrimp doctor prints and those of deploy/terraform and deploy/cloudformation are compared with it.
//
// Machines, launch templates and the like are touched only where they carry the installation's tag.
// Where IAM knows no condition for an action (descriptions, prices), it is allowed for reading alone.
package policy

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Tag is the key of the tag that says of which engine a machine is. Its name is known before a server has ever run.
const Tag = "scrimp-engine"

// Scope is what the policy is limited to. A field may also be an expression of a template, such as
// ${AWS::AccountId}: it is put into names as it stands.
type Scope struct {
	Partition    string // aws, aws-cn, aws-us-gov; "" is aws
	Account      string // twelve digits
	Region       string // "" or * is all
	Installation string // the tag's value: the name of the engine
	Bucket       string // of the checkpoints
	JobRole      string // name of the role that gives a job its credentials
}

// Document is a policy as IAM takes it.
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
	Principal map[string][]string            `json:",omitempty"` // of trust policies only
}

// version is the version of IAM's policy language.
const version = "2012-10-17"

// String is the document as JSON, indented.
func (d Document) String() string {
	b, _ := json.MarshalIndent(d, "", "  ") // text and lists of it: it has no way to fail
	return string(b)
}

// Server is what the server's role may do.
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
		// what a machine is made of and attached to: RunInstances asks for it, and nothing is made here
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

// Job is the most that a job's role may do: what its jobs get is cut down to Prefix when it is assumed.
func Job(s Scope) Document {
	return Document{Version: version, Statement: []Statement{
		allow("ListCheckpoints", []string{"s3:ListBucket"}, []string{s.bucket("")}, nil),
		allow("KeepCheckpoints", objects, []string{s.bucket("/*")}, nil),
	}}
}

// Prefix is the session policy of one job's credentials: the objects below one prefix, which ends in no slash.
// Lists are of what lies below it: a list of the prefix without a slash would show what else begins with the same
// letters.
func Prefix(s Scope, prefix string) Document {
	prefix = strings.Trim(prefix, "/")
	return Document{Version: version, Statement: []Statement{
		allow("ListCheckpoints", []string{"s3:ListBucket"}, []string{s.bucket("")},
			map[string]map[string][]string{"StringLike": {"s3:prefix": {prefix + "/*"}}}),
		allow("KeepCheckpoints", objects, []string{s.bucket("/" + prefix + "/*")}, nil),
	}}
}

// Trust says who may take the server's role: machines of EC2.
func Trust() Document {
	return trust("Machines", map[string][]string{"Service": {"ec2.amazonaws.com"}})
}

// JobTrust says who may take the job's role: the server's.
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

// images belong to whoever published them.
func (s Scope) images() []string {
	return []string{"arn:" + s.partition() + ":ec2:" + s.region() + "::image/*",
		"arn:" + s.partition() + ":ec2:" + s.region() + "::snapshot/*"}
}

func (s Scope) bucket(rest string) string { return "arn:" + s.partition() + ":s3:::" + s.Bucket + rest }

func (s Scope) role(name string) string {
	return "arn:" + s.partition() + ":iam::" + s.Account + ":role/" + name
}

// Compact is the document as JSON without white space: STS counts the characters of a session policy.
func (d Document) Compact() string {
	b, _ := json.Marshal(d) // text and lists of it: it has no way to fail
	return string(b)
}

// Actions are all actions that a document allows, ordered, each once.
func (d Document) Actions() []string {
	found := map[string]bool{}
	for _, s := range d.Statement {
		for _, a := range s.Action {
			found[a] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
