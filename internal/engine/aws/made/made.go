//go:build !local

// Package made reads the outputs of the Terraform module for an AWS engine, and compares the engine and its account
// with them.
package made

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"scrimp/internal/content/blob/scopedcreds"
	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/account"
	"scrimp/internal/engine/aws/setting"
)

// Module holds the outputs of deploy/terraform or deploy/cloudformation.
type Module struct {
	Installation, Bucket, SecurityGroup, LaunchTemplate, ServerRole, JobRole, Server string
	Subnets                                                                          []string
}

// Read parses the output of terraform output -json, for the module itself or for an output that contains the module,
// or the outputs of a stack from aws cloudformation describe-stacks.
func Read(text []byte) (*Module, error) {
	var stack []struct{ OutputKey, OutputValue string }
	if json.Unmarshal(text, &stack) == nil {
		values := map[string]any{}
		for _, o := range stack {
			values[snake(o.OutputKey)] = o.OutputValue
		}
		return madeOf(values)
	}
	var outputs map[string]any
	if err := json.Unmarshal(text, &outputs); err != nil {
		return nil, fmt.Errorf("it is not what terraform output -json prints: %w", err)
	}
	values := map[string]any{}
	for name, v := range outputs {
		if o, ok := v.(map[string]any); ok && o["value"] != nil {
			v = o["value"]
		}
		values[name] = v
	}
	most := values // the module's outputs are in the map that has most of their names
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if module, ok := values[name].(map[string]any); ok && outputsIn(module) > outputsIn(most) {
			most = module
		}
	}
	return madeOf(most)
}

// outputs returns the names of the module's text outputs and their destinations.
func (m *Module) outputs() map[string]*string {
	return map[string]*string{"installation": &m.Installation, "bucket": &m.Bucket,
		"security_group": &m.SecurityGroup, "launch_template": &m.LaunchTemplate, "server_role": &m.ServerRole,
		"job_role": &m.JobRole, "server": &m.Server}
}

// outputsIn counts the module's outputs in values.
func outputsIn(values map[string]any) (n int) {
	for name := range (&Module{}).outputs() {
		if values[name] != nil {
			n++
		}
	}
	return n
}

// madeOf fills a Module from values by output name.
func madeOf(values map[string]any) (*Module, error) {
	m := &Module{}
	var missing []string
	for name, to := range m.outputs() {
		*to, _ = values[name].(string)
		if *to == "" && name != "server" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return nil, fmt.Errorf("it has no %s: in the folder of main.tf put all of the module out, as "+
			`output "scrimp" { value = module.scrimp }, apply, and give what terraform output -json prints`,
			strings.Join(missing, ", "))
	}
	switch list := values["subnets"].(type) {
	case string:
		m.Subnets = strings.Split(list, ",")
	case []any:
		for _, v := range list {
			if id, ok := v.(string); ok {
				m.Subnets = append(m.Subnets, id)
			}
		}
	}
	if len(m.Subnets) == 0 {
		return nil, errors.New("it has no subnets: let Terraform apply the whole module")
	}
	return m, nil
}

// snake converts a template name to the module's form: SecurityGroup becomes security_group.
func snake(name string) string {
	var b strings.Builder
	for n, r := range name {
		if n > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

// comparer is an engine that is compared with the module.
type comparer struct {
	name string
	with *setting.With
}

// Compare compares an engine and its account with the module's outputs.
func Compare(ctx context.Context, m *Module, name string, with *setting.With, a *account.Client) []engine.Finding {
	d := comparer{name, with}
	found := []engine.Finding{d.sameSettings(m), d.sameStore(m), sameUser(a, m)}
	for _, look := range []struct {
		name string
		do   func(context.Context, *account.Client, *Module) (string, error)
	}{{"made: subnets", d.subnetsAre}, {"made: security group", d.groupIs}, {"made: launch template", d.templateIs},
		{"made: server", d.serverIs}} {
		f := engine.Finding{Name: look.name}
		var err error
		f.Text, err = look.do(ctx, a, m)
		if f.OK = err == nil; !f.OK {
			f.Text = account.Explain(d.name, d.with, err).Error()
		}
		if f.Text != "" {
			found = append(found, f)
		}
	}
	return found
}

// sameSettings compares engines.yaml with the outputs.
func (d *comparer) sameSettings(m *Module) engine.Finding {
	f := engine.Finding{Name: "made: settings"}
	var wrong []string
	if d.name != m.Installation {
		wrong = append(wrong, fmt.Sprintf("the engine is called %s, and the server's role may touch only what has the tag "+
			"of %s: call the engine so, or apply the module with installation = %q", d.name, m.Installation, d.name))
	}
	ours, theirs := slices.Sorted(slices.Values(d.with.Subnets)), slices.Sorted(slices.Values(m.Subnets))
	if !slices.Equal(ours, theirs) {
		wrong = append(wrong, fmt.Sprintf("write subnets: [%s] under with (they are [%s])", strings.Join(theirs, ", "),
			strings.Join(ours, ", ")))
	}
	if d.with.SecurityGroup != m.SecurityGroup {
		wrong = append(wrong, fmt.Sprintf("write security_group: %s under with (it is %q)", m.SecurityGroup,
			d.with.SecurityGroup))
	}
	f.OK, f.Text = len(wrong) == 0, "name, subnets and security group are those that were made"
	if !f.OK {
		f.Text = strings.Join(wrong, "; ")
	}
	return f
}

// sameStore compares the declared store with the bucket and role of the outputs.
func (d *comparer) sameStore(m *Module) engine.Finding {
	f := engine.Finding{Name: "made: store"}
	bucket, err := scopedcreds.Declared(m.Bucket, d.with.Region)
	switch {
	case err != nil:
		f.Text = fmt.Sprintf("bucket %s: %v", m.Bucket, err)
	case d.with.Bucket == nil:
		f.OK, f.Text = true, fmt.Sprintf("none is declared: jobs get credentials for the bucket with store: %s and "+
			"job_role: %s under with", m.Bucket, m.JobRole)
	case d.with.Bucket.Bucket != bucket.Bucket || d.with.Bucket.Region != bucket.Region:
		f.Text = fmt.Sprintf("the store is %s, and the bucket that was made %s: write that one", d.with.Store, m.Bucket)
	case d.with.JobRole != m.JobRole:
		f.Text = fmt.Sprintf("job_role is %s, and the role that was made %s: write that one", d.with.JobRole, m.JobRole)
	default:
		f.OK, f.Text = true, "bucket and job_role are those that were made"
	}
	return f
}

// sameUser reports whether the check runs with the server's role.
func sameUser(a *account.Client, m *Module) engine.Finding {
	f := engine.Finding{Name: "made: role", OK: true}
	role := strings.Split(m.ServerRole, ":")
	name := m.ServerRole[strings.LastIndexByte(m.ServerRole, '/')+1:]
	switch {
	case len(role) != 6 || role[4] != a.Account:
		f.OK, f.Text = false, fmt.Sprintf("%s was made, and this is %s of account %s: use the account's credentials",
			m.ServerRole, a.User, a.Account)
	case strings.Contains(a.User, ":assumed-role/"+name+"/"):
		f.Text = "these are the credentials of the server's role, " + name
	default:
		f.Text = fmt.Sprintf("this is %s, not the server's role %s: what was tried says nothing about that one", a.User, name)
	}
	return f
}

// subnetsAre checks that the subnets exist, are in one network, and give their machines a way out.
func (d *comparer) subnetsAre(ctx context.Context, a *account.Client, m *Module) (string, error) {
	out, err := a.EC2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{SubnetIds: m.Subnets})
	if err != nil {
		return "", err
	}
	var zones, closed []string
	for _, s := range out.Subnets {
		zones = append(zones, sdk.ToString(s.AvailabilityZone))
		if !sdk.ToBool(s.MapPublicIpOnLaunch) {
			closed = append(closed, sdk.ToString(s.SubnetId))
		}
		if first := out.Subnets[0]; sdk.ToString(s.VpcId) != sdk.ToString(first.VpcId) {
			return "", fmt.Errorf("%s and %s are not in one network", sdk.ToString(s.SubnetId), sdk.ToString(first.SubnetId))
		}
	}
	if len(closed) > 0 && d.with.PublicIP == nil {
		return "", fmt.Errorf("%s gives machines no public address any more, which is their way out: apply the module "+
			"again, or write public_ip: true", strings.Join(closed, ", "))
	}
	slices.Sort(zones)
	return "they are there, in " + strings.Join(zones, ", "), nil
}

// groupIs checks that only the group's own members can connect.
func (d *comparer) groupIs(ctx context.Context, a *account.Client, m *Module) (string, error) {
	out, err := a.EC2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{m.SecurityGroup}})
	if err != nil {
		return "", err
	}
	for _, g := range out.SecurityGroups {
		for _, in := range g.IpPermissions {
			own := !slices.ContainsFunc(in.UserIdGroupPairs, func(p types.UserIdGroupPair) bool {
				return sdk.ToString(p.GroupId) != m.SecurityGroup
			})
			if len(in.IpRanges)+len(in.Ipv6Ranges)+len(in.PrefixListIds) > 0 || !own {
				return "", fmt.Errorf("%s lets others in: remove its inbound rules", m.SecurityGroup)
			}
		}
	}
	return "it is there, and lets nobody in", nil
}

// templateIs checks that the launch template exists.
func (d *comparer) templateIs(ctx context.Context, a *account.Client, m *Module) (string, error) {
	_, err := a.EC2.DescribeLaunchTemplates(ctx,
		&ec2.DescribeLaunchTemplatesInput{LaunchTemplateIds: []string{m.LaunchTemplate}})
	if err != nil {
		return "", err
	}
	return "it is there", nil
}

// serverIs reports the state of the server's instance; nothing if there is none.
func (d *comparer) serverIs(ctx context.Context, a *account.Client, m *Module) (string, error) {
	if m.Server == "" {
		return "", nil
	}
	out, err := a.EC2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{m.Server}})
	if err != nil {
		return "", err
	}
	for _, r := range out.Reservations {
		for _, i := range r.Instances {
			if i.State == nil || i.State.Name != types.InstanceStateNameRunning {
				return "", fmt.Errorf("%s does not run: start it in the console", m.Server)
			}
		}
	}
	return m.Server + " runs", nil
}
