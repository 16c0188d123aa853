package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/engine/aws/policy"
	"scrimp/internal/test/must"
)

// stack is the template with what its functions give for scope: names of resources stand for their identifiers.
type stack struct {
	t          *testing.T
	parameters map[string]string
	resources  map[string]any
	outputs    map[string]any
	used       map[string]bool // names that something refers to
	attributes map[string][]string
}

var substitution = regexp.MustCompile(`\$\{([A-Za-z0-9:]+)\}`)

// ref is what a name gives.
func (s *stack) ref(name string) string {
	s.used[name] = true
	known := map[string]string{"AWS::Partition": "aws", "AWS::AccountId": scope.Account, "AWS::Region": scope.Region,
		"Installation": scope.Installation, "Bucket": scope.Bucket, "BillsBucket": billsBucket, "BillsPrefix": billsPrefix, "AWS::NoValue": ""}
	if v, ok := known[name]; ok {
		return v
	}
	if v, ok := s.parameters[name]; ok {
		return v
	}
	if _, ok := s.resources[name]; !ok {
		s.t.Errorf("%s is neither a parameter nor a resource", name)
	}
	return "<" + name + ">"
}

// value works out a node of the template.
func (s *stack) value(n *yaml.Node) any {
	switch n.Tag {
	case "!Ref":
		return s.ref(n.Value)
	case "!Sub":
		return substitution.ReplaceAllStringFunc(n.Value, func(m string) string { return s.ref(m[2 : len(m)-1]) })
	case "!GetAtt":
		name, attribute, _ := strings.Cut(n.Value, ".")
		s.ref(name)
		s.attributes[name] = append(s.attributes[name], attribute)
		if n.Value == "ServerRole.Arn" {
			return serverARN
		}
		return "<" + n.Value + ">"
	case "!GetAZs", "!Cidr", "!Equals", "!Not", "!Select", "!Join":
		for _, c := range n.Content {
			s.value(c)
		}
		return "<" + n.Tag[1:] + ">"
	}
	if strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") {
		s.t.Errorf("line %d: %s is no function that is known", n.Line, n.Tag)
	}
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if _, twice := m[key]; twice {
				s.t.Errorf("line %d: %s stands twice", n.Line, key)
			}
			m[key] = s.value(n.Content[i+1])
		}
		if inner, ok := m["Fn::Base64"]; ok && len(m) == 1 {
			return inner
		}
		if branches, ok := m["Fn::If"].([]any); ok && len(m) == 1 && len(branches) == 3 { // the condition holds
			return branches[1]
		}
		return m
	case yaml.SequenceNode:
		list := []any{}
		for _, c := range n.Content {
			list = append(list, s.value(c))
		}
		return list
	}
	var v any
	if err := n.Decode(&v); err != nil {
		s.t.Errorf("line %d: %v", n.Line, err)
	}
	return v
}

func template(t *testing.T) (*stack, map[string]*yaml.Node) {
	t.Helper()
	text, err := os.ReadFile("cloudformation/scrimp.yaml")
	must.Do(t, err)
	var parameters map[string]struct {
		Type        string `yaml:"Type"`
		Description string `yaml:"Description"`
		Default     string `yaml:"Default"`
	}
	var parts map[string]yaml.Node
	must.Do(t, yaml.Unmarshal(text, &parts))
	if n := parts["Parameters"]; n.Decode(&parameters) != nil {
		t.Fatal("parameters")
	}
	s := &stack{t: t, parameters: map[string]string{}, resources: map[string]any{}, outputs: map[string]any{},
		used: map[string]bool{}, attributes: map[string][]string{}}
	for name, p := range parameters {
		s.parameters[name] = p.Default
		if p.Description == "" || p.Type == "" {
			t.Errorf("parameter %s has no description or type", name)
		}
	}
	all := map[string]*yaml.Node{}
	nodes := parts["Resources"]
	for i := 0; i < len(nodes.Content); i += 2 {
		s.resources[nodes.Content[i].Value], all[nodes.Content[i].Value] = nil, nodes.Content[i+1]
	}
	for name, n := range all {
		s.resources[name] = s.value(n)
	}
	for _, section := range []string{"Conditions", "Rules"} {
		n := parts[section]
		s.value(&n)
	}
	outputs := parts["Outputs"]
	s.outputs, _ = s.value(&outputs).(map[string]any)
	return s, all
}

// specification is what CloudFormation knows of the types that the template uses.
type specification struct {
	Types map[string]struct {
		Properties map[string]string
		Attributes []string
	}
}

// check holds a value of a type against its properties.
func (spec specification) check(t *testing.T, kind, where string, v any) {
	known, ok := spec.Types[kind]
	m, isMap := v.(map[string]any)
	if !ok || !isMap {
		t.Errorf("%s: %s is no known type, or %T no object", where, kind, v)
		return
	}
	for name, inner := range m {
		form, ok := known.Properties[name]
		if !ok {
			t.Errorf("%s: %s has no property %s", where, kind, name)
			continue
		}
		form = strings.TrimPrefix(form, "!")
		element, isList := strings.CutPrefix(form, "[]")
		items := []any{inner}
		if list, is := inner.([]any); is != isList {
			t.Errorf("%s.%s: a list %v, want %v", where, name, is, isList)
		} else if is {
			items = list
		}
		for _, item := range items {
			if _, nested := spec.Types[element]; nested {
				spec.check(t, element, where+"."+name, item)
			} else if _, isObject := item.(map[string]any); isObject && element != "Json" {
				t.Errorf("%s.%s is an object, want %s", where, name, element)
			}
		}
	}
	for name, form := range known.Properties {
		if _, ok := m[name]; !ok && strings.HasPrefix(form, "!") {
			t.Errorf("%s: %s needs %s", where, kind, name)
		}
	}
}

func TestTheTemplateIsOfTheTypesThatCloudFormationKnows(t *testing.T) {
	text, err := os.ReadFile("cloudformation/specification.json")
	must.Do(t, err)
	var spec specification
	if err := json.Unmarshal(text, &spec); err != nil || len(spec.Types) == 0 {
		t.Fatal(err)
	}
	s, _ := template(t)
	for name, r := range s.resources {
		m := r.(map[string]any)
		kind, _ := m["Type"].(string)
		spec.check(t, kind, name, m["Properties"])
		for _, a := range s.attributes[name] {
			if !slices.Contains(spec.Types[kind].Attributes, a) {
				t.Errorf("%s has no attribute %s", kind, a)
			}
		}
		for key := range m {
			if !slices.Contains([]string{"Type", "Properties", "DependsOn", "Condition", "DeletionPolicy",
				"UpdateReplacePolicy"}, key) {
				t.Errorf("%s: %s", name, key)
			}
		}
	}
	for name := range s.parameters {
		if !s.used[name] {
			t.Errorf("parameter %s is used nowhere", name)
		}
	}
}

// counterparts are the types of CloudFormation for those of Terraform; "" is a part of another resource there.
var counterparts = map[string]string{
	"aws_vpc": "AWS::EC2::VPC", "aws_internet_gateway": "AWS::EC2::InternetGateway AWS::EC2::VPCGatewayAttachment",
	"aws_subnet": "AWS::EC2::Subnet", "aws_route_table": "AWS::EC2::RouteTable", "aws_route": "AWS::EC2::Route",
	"aws_route_table_association": "AWS::EC2::SubnetRouteTableAssociation", "aws_vpc_endpoint": "AWS::EC2::VPCEndpoint",
	"aws_security_group": "AWS::EC2::SecurityGroup", "aws_vpc_security_group_egress_rule": "",
	"aws_vpc_security_group_ingress_rule": "", "aws_s3_bucket": "AWS::S3::Bucket",
	"aws_s3_bucket_public_access_block": "", "aws_s3_bucket_ownership_controls": "",
	"aws_s3_bucket_server_side_encryption_configuration": "", "aws_s3_bucket_lifecycle_configuration": "",
	"aws_s3_bucket_policy": "AWS::S3::BucketPolicy", "aws_iam_role": "AWS::IAM::Role", "aws_iam_role_policy": "",
	"aws_iam_role_policy_attachment": "", "aws_iam_instance_profile": "AWS::IAM::InstanceProfile",
	"aws_launch_template": "AWS::EC2::LaunchTemplate",
	"aws_instance":        "AWS::EC2::Instance AWS::EC2::LaunchTemplate", // whose metadata options stand in a template
}

func TestTheTemplateMakesWhatTheModuleMakes(t *testing.T) {
	want, got := map[string]int{}, map[string]int{}
	for _, b := range module(t) {
		if b.Type != "resource" {
			continue
		}
		types, ok := counterparts[b.Labels[0]]
		if !ok {
			t.Errorf("%s has no counterpart", b.Labels[0])
		}
		n := 1
		if c := b.Body.Attributes["count"]; c != nil && strings.HasSuffix(b.Labels[1], "zone") {
			n = 3 // the default of zones
		}
		for _, name := range strings.Fields(types) {
			want[name] += n
		}
	}
	s, _ := template(t)
	for _, r := range s.resources {
		got[fmt.Sprint(r.(map[string]any)["Type"])]++
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the template makes %v, the module %v", got, want)
	}
	for _, b := range module(t) {
		if b.Type != "output" {
			continue
		}
		name := ""
		for _, word := range strings.Split(b.Labels[0], "_") {
			name += strings.ToUpper(word[:1]) + word[1:]
		}
		if _, ok := s.outputs[name]; !ok {
			t.Errorf("no output %s", name)
		}
	}
}

// follow goes along a path of keys and indices into a value.
func follow(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch k := step.(type) {
		case string:
			v = v.(map[string]any)[k]
		case int:
			v = v.([]any)[k]
		}
		if v == nil {
			t.Fatalf("nothing at %v of %v", step, path)
		}
	}
	return v
}

func TestTheTemplatesPoliciesAreThoseOfTheProgramAndOfTheModule(t *testing.T) {
	s, _ := template(t)
	want := wanted(t)
	want["bucket_policy"] = localOf(t, "bucket_policy")
	for name, got := range map[string]any{
		"server_policy": follow(t, s.resources["ServerRole"], "Properties", "Policies", 0, "PolicyDocument"),
		"bills_policy":  follow(t, s.resources["ServerRole"], "Properties", "Policies", 1, "PolicyDocument"),
		"job_policy":    follow(t, s.resources["JobRole"], "Properties", "Policies", 0, "PolicyDocument"),
		"trust":         follow(t, s.resources["ServerRole"], "Properties", "AssumeRolePolicyDocument"),
		"job_trust":     follow(t, s.resources["JobRole"], "Properties", "AssumeRolePolicyDocument"),
		"bucket_policy": follow(t, s.resources["CheckpointsPolicy"], "Properties", "PolicyDocument"),
	} {
		if !reflect.DeepEqual(got, want[name]) {
			g, _ := json.MarshalIndent(got, "", " ")
			t.Errorf("%s of the template is\n%s", name, g)
		}
	}
}

func TestNothingComesInFromOutside(t *testing.T) {
	s, _ := template(t)
	for name, r := range s.resources {
		in, _ := r.(map[string]any)["Properties"].(map[string]any)["SecurityGroupIngress"].([]any)
		for _, rule := range in {
			m := rule.(map[string]any)
			if name != "ServerGroup" || m["SourceSecurityGroupId"] != "<MachinesGroup>" || m["CidrIp"] != nil {
				t.Errorf("%s lets in %v", name, m)
			}
		}
	}
	for _, b := range module(t) {
		if b.Type != "resource" || !strings.Contains(b.Labels[0], "security_group") {
			continue
		}
		if b.Labels[0] == "aws_vpc_security_group_ingress_rule" &&
			(b.Body.Attributes["cidr_ipv4"] != nil || b.Body.Attributes["referenced_security_group_id"] == nil) {
			t.Errorf("%v lets in addresses", b.Labels)
		}
	}
	// what carries the tag is a machine, which the server gives back: the server itself must not
	tags, _ := json.Marshal(follow(t, s.resources["ServerInstance"], "Properties", "Tags"))
	if strings.Contains(string(tags), policy.Tag) {
		t.Errorf("the server carries %s", tags)
	}
}

func TestBothBeginTheSameServer(t *testing.T) {
	script, err := os.ReadFile("terraform/server.sh.tftpl")
	must.Do(t, err)
	s, _ := template(t)
	got := follow(t, s.resources["ServerInstance"], "Properties", "UserData")
	want := strings.NewReplacer("${scrimp_url}", s.parameters["ScrimpURL"], "${scrimp_sha256}",
		s.parameters["ScrimpSHA256"]).Replace(string(script))
	if got != want {
		t.Errorf("the template begins\n%v\nand the module\n%s", got, want)
	}
	if substitution.MatchString(want) || !strings.Contains(want, "--tls-cert") || !strings.Contains(want, "sha256sum -c") {
		t.Errorf("the script is\n%s", want)
	}
}
