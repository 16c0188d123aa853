package deploy

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"scrimp/internal/engine/aws/policy"
	"scrimp/internal/test/must"
)

// arguments are the arguments and blocks of each resource type and data source that the module uses, and the
// attributes that it reads, blocks with their own in braces. They were written from the documentation of the provider
// (registry.terraform.io/providers/hashicorp/aws/latest/docs, versions 5 and 6, of 2026-11-23), since the provider's
// own schema takes a build of several gigabytes: a name that is misspelt is found, the type of a value is not.
var arguments = map[string]string{
	"data.aws_availability_zones":         "state filter{ name values } names",
	"data.aws_caller_identity":            "account_id",
	"data.aws_partition":                  "partition",
	"data.aws_region":                     "name",
	"data.aws_ssm_parameter":              "name value",
	"aws_vpc":                             "cidr_block enable_dns_support enable_dns_hostnames tags id",
	"aws_internet_gateway":                "vpc_id tags id",
	"aws_subnet":                          "vpc_id availability_zone cidr_block map_public_ip_on_launch tags id",
	"aws_route_table":                     "vpc_id tags id",
	"aws_route":                           "route_table_id destination_cidr_block gateway_id",
	"aws_route_table_association":         "subnet_id route_table_id",
	"aws_vpc_endpoint":                    "vpc_id service_name vpc_endpoint_type route_table_ids tags",
	"aws_security_group":                  "description vpc_id tags id",
	"aws_vpc_security_group_egress_rule":  "description security_group_id ip_protocol cidr_ipv4",
	"aws_vpc_security_group_ingress_rule": "description security_group_id referenced_security_group_id ip_protocol from_port to_port",
	"aws_s3_bucket":                       "bucket tags id",
	"aws_s3_bucket_public_access_block": "bucket block_public_acls block_public_policy ignore_public_acls " +
		"restrict_public_buckets",
	"aws_s3_bucket_ownership_controls": "bucket rule{ object_ownership }",
	"aws_s3_bucket_server_side_encryption_configuration": "bucket rule{ " +
		"apply_server_side_encryption_by_default{ sse_algorithm } }",
	"aws_s3_bucket_lifecycle_configuration": "bucket rule{ id status filter{ } " +
		"abort_incomplete_multipart_upload{ days_after_initiation } }",
	"aws_s3_bucket_policy":           "bucket policy",
	"aws_iam_role":                   "name assume_role_policy max_session_duration tags id arn",
	"aws_iam_role_policy":            "name role policy",
	"aws_iam_role_policy_attachment": "role policy_arn",
	"aws_iam_instance_profile":       "name role tags",
	"aws_launch_template": "name image_id update_default_version tags id " +
		"metadata_options{ http_endpoint http_tokens http_put_response_hop_limit } " +
		"network_interfaces{ device_index associate_public_ip_address security_groups } " +
		"block_device_mappings{ device_name ebs{ volume_size volume_type encrypted delete_on_termination } } " +
		"tag_specifications{ resource_type tags }",
	"aws_instance": "ami instance_type subnet_id vpc_security_group_ids iam_instance_profile " +
		"associate_public_ip_address tags user_data id " +
		"metadata_options{ http_endpoint http_tokens http_put_response_hop_limit } " +
		"root_block_device{ volume_size volume_type encrypted delete_on_termination }",
}

// names are the words of an entry of arguments, nested ones behind the block that they stand in: rule.id.
func names(text string) map[string]bool {
	found, path := map[string]bool{}, ""
	for _, word := range strings.Fields(text) {
		if word == "}" {
			path = path[:strings.LastIndex(strings.TrimSuffix(path, "."), ".")+1]
			continue
		}
		name, opens := strings.CutSuffix(word, "{")
		found[path+name] = true
		if opens {
			path += name + "."
		}
	}
	return found
}

// module is the blocks of deploy/terraform.
func module(t *testing.T) []*hclsyntax.Block {
	t.Helper()
	files, err := filepath.Glob("terraform/*.tf")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var blocks []*hclsyntax.Block
	for _, name := range files {
		text, err := os.ReadFile(name)
		must.Do(t, err)
		f, bad := hclsyntax.ParseConfig(text, name, hcl.InitialPos)
		if bad.HasErrors() {
			t.Fatal(bad)
		}
		blocks = append(blocks, f.Body.(*hclsyntax.Body).Blocks...)
	}
	return blocks
}

func TestTheModuleIsFormattedAsTerraformDoes(t *testing.T) {
	files, _ := filepath.Glob("terraform/*.tf")
	for _, name := range files {
		text, err := os.ReadFile(name)
		must.Do(t, err)
		if !bytes.Equal(hclwrite.Format(text), text) {
			t.Errorf("%s is not formatted: terraform fmt writes it", name)
		}
	}
}

func TestEveryNameInTheModuleIsKnown(t *testing.T) {
	made := map[string]string{} // address of a resource, variable or local, and its entry among arguments
	used := map[string]bool{}
	blocks := module(t)
	for _, b := range blocks {
		switch b.Type {
		case "resource":
			made[b.Labels[0]+"."+b.Labels[1]] = b.Labels[0]
		case "data":
			made["data."+b.Labels[0]+"."+b.Labels[1]] = "data." + b.Labels[0]
		case "variable":
			made["var."+b.Labels[0]] = ""
		case "locals":
			for name := range b.Body.Attributes {
				made["local."+name] = ""
			}
		}
	}
	for _, b := range blocks {
		if b.Type == "resource" || b.Type == "data" {
			kind := strings.TrimPrefix(b.Type+".", "resource.") + b.Labels[0]
			known, ok := arguments[kind]
			if !ok {
				t.Errorf("%s is not in the table", kind)
			}
			checkBody(t, kind, "", b.Body, names(known))
		}
		if b.Type == "variable" || b.Type == "terraform" {
			continue // types are words, and conditions name the variable itself
		}
		for _, v := range references(b.Body) {
			checkReference(t, v, made, used)
		}
	}
	for name := range made {
		if (strings.HasPrefix(name, "var.") || strings.HasPrefix(name, "local.")) && !used[name] {
			t.Errorf("%s is used nowhere", name)
		}
	}
}

// references are all names that stand in a body.
func references(b *hclsyntax.Body) []hcl.Traversal {
	var list []hcl.Traversal
	for _, a := range b.Attributes {
		list = append(list, a.Expr.Variables()...)
	}
	for _, inner := range b.Blocks {
		list = append(list, references(inner.Body)...)
	}
	return list
}

func checkBody(t *testing.T, kind, path string, b *hclsyntax.Body, known map[string]bool) {
	for name := range b.Attributes {
		if !known[path+name] && (path != "" || name != "count") {
			t.Errorf("%s has no argument %s", kind, path+name)
		}
	}
	for _, inner := range b.Blocks {
		if path == "" && inner.Type == "lifecycle" {
			continue
		}
		if !known[path+inner.Type] {
			t.Errorf("%s has no block %s", kind, path+inner.Type)
		}
		checkBody(t, kind, path+inner.Type+".", inner.Body, known)
	}
}

func checkReference(t *testing.T, v hcl.Traversal, made map[string]string, used map[string]bool) {
	var parts []string
	for _, step := range v {
		switch s := step.(type) {
		case hcl.TraverseRoot:
			parts = append(parts, s.Name)
		case hcl.TraverseAttr:
			parts = append(parts, s.Name)
		}
	}
	if slices.Contains([]string{"count", "path", "ami"}, parts[0]) {
		return
	}
	length := map[bool]int{true: 3, false: 2}[parts[0] == "data"]
	if len(parts) < length {
		t.Errorf("%v is no reference", parts)
		return
	}
	address := strings.Join(parts[:length], ".")
	kind, ok := made[address]
	used[address] = true
	if !ok {
		t.Errorf("%s is declared nowhere", address)
	}
	if kind != "" && len(parts) > length && !names(arguments[kind])[parts[length]] {
		t.Errorf("%s has no attribute %s", kind, parts[length])
	}
}

func TestVariablesAndOutputsAreDescribed(t *testing.T) {
	outputs := map[string]bool{}
	for _, b := range module(t) {
		if b.Type != "variable" && b.Type != "output" {
			continue
		}
		if b.Body.Attributes["description"] == nil || b.Type == "variable" && b.Body.Attributes["type"] == nil {
			t.Errorf("%s %s has no description or type", b.Type, b.Labels[0])
		}
		outputs[b.Labels[0]] = outputs[b.Labels[0]] || b.Type == "output"
	}
	for _, name := range []string{"installation", "bucket", "subnets", "security_group", "launch_template", "server_role",
		"job_role", "server"} {
		if !outputs[name] {
			t.Errorf("no output %s", name)
		}
	}
}

// scope is the installation that both texts are worked out for.
var scope = policy.Scope{Account: "123456789012", Region: "eu-west-1", Installation: "team-a", Bucket: "ckpt",
	JobRole: "team-a-scrimp-job"}

// The export of bills that both texts are worked out for.
const (
	billsBucket = "exports"
	billsPrefix = "cur/daily"
)

const serverARN = "arn:aws:iam::123456789012:role/team-a-scrimp-server"

// localOf works out a value of the module's locals.
func localOf(t *testing.T, name string) any {
	t.Helper()
	object := func(kv ...string) cty.Value {
		m := map[string]cty.Value{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = cty.StringVal(kv[i+1])
		}
		return cty.ObjectVal(m)
	}
	here := func(v cty.Value) cty.Value { return cty.ObjectVal(map[string]cty.Value{"here": v}) }
	scopeOf := &hcl.EvalContext{Variables: map[string]cty.Value{
		"var": object("installation", scope.Installation, "bucket", scope.Bucket, "bills_bucket", billsBucket, "bills_prefix", billsPrefix),
		"data": cty.ObjectVal(map[string]cty.Value{
			"aws_caller_identity": here(object("account_id", scope.Account)),
			"aws_partition":       here(object("partition", "aws")), "aws_region": here(object("name", scope.Region)),
		}),
		"aws_iam_role": cty.ObjectVal(map[string]cty.Value{"server": object("arn", serverARN)}),
	}}
	for _, b := range module(t) {
		if b.Type != "locals" || b.Body.Attributes[name] == nil {
			continue
		}
		v, bad := b.Body.Attributes[name].Expr.Value(scopeOf)
		if bad.HasErrors() {
			t.Fatal(bad)
		}
		text, err := ctyjson.Marshal(v, v.Type())
		must.Do(t, err)
		return decoded(t, string(text))
	}
	t.Fatalf("no local %s", name)
	return nil
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	var v any
	must.Do(t, json.Unmarshal([]byte(text), &v))
	return v
}

// wanted are the policies as the program has them.
func wanted(t *testing.T) map[string]any {
	bills := policy.Document{Version: "2012-10-17", Statement: policy.Export(policy.Scope{Bucket: billsBucket}, billsPrefix)}
	return map[string]any{"bills_policy": decoded(t, bills.String()), "server_policy": decoded(t, policy.Server(scope).String()),
		"job_policy": decoded(t, policy.Job(scope).String()), "trust": decoded(t, policy.Trust().String()),
		"job_trust": decoded(t, policy.JobTrust(serverARN).String())}
}

func TestTheModulesPoliciesAreThoseOfTheProgram(t *testing.T) {
	want := wanted(t)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got := localOf(t, name); !reflect.DeepEqual(got, want[name]) {
			g, _ := json.MarshalIndent(got, "", " ")
			w, _ := json.MarshalIndent(want[name], "", " ")
			t.Errorf("local.%s is\n%s\nand the program's\n%s", name, g, w)
		}
	}
}
