//go:build !local

package aws

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/account"
	"scrimp/internal/engine/aws/made"
	"scrimp/internal/engine/aws/policy"
	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/engine/aws/stock"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// Examine implements engine.Examiner. It uses dry runs: it creates and rents nothing.
func (d *Driver) Examine(ctx context.Context) []engine.Finding {
	a, err := d.connected(ctx)
	if err != nil {
		return []engine.Finding{{Name: "credentials", Text: err.Error()}}
	}
	found := []engine.Finding{{Name: "credentials", OK: true,
		Text: fmt.Sprintf("%s, account %s, region %s", a.User, a.Account, d.with.Region)}}
	x, err := d.indexed(ctx)
	if err != nil {
		return append(found, engine.Finding{Name: "types", Text: d.explain(err).Error()}, d.way())
	}
	sales := d.pools(x)
	if len(d.with.Capacity) > 0 {
		found = append(found, d.offered(x, sales))
	}
	found = append(found, d.signs())
	if d.with.SecurityGroup != "" {
		found = append(found, d.groupThere(ctx, a))
	}
	for _, c := range d.with.Capacity {
		n := slices.IndexFunc(sales, func(s sale) bool { return s.offer.Capacity == c })
		if n >= 0 {
			found = append(found, d.tries(ctx, a, &sales[n]))
		}
	}
	found = append(found, d.rights(ctx, a), d.quotas(ctx, a, sales))
	found = slices.Concat(found, d.reservations(a, x), d.commitments(ctx, a), d.asOrdered(ctx, a))
	if slices.Contains(d.with.Capacity, market.Spot) {
		found = append(found, d.scores(ctx, a, x, sales))
	}
	if d.with.Bucket != nil {
		found = append(found, d.lending(ctx))
	}
	return append(found, d.way())
}

// groupThere reports whether the configured security group exists.
func (d *Driver) groupThere(ctx context.Context, a *account.Client) engine.Finding {
	f := engine.Finding{Name: "group", OK: true, Text: "the security group " + d.with.SecurityGroup + " is there"}
	_, err := a.EC2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{d.with.SecurityGroup}})
	if err != nil {
		f.OK, f.Text = false, d.explain(err).Error()
	}
	return f
}

// otherImage returns the architecture of the images if none has the agent's.
func (x *index) otherImage() (arch string) {
	for a := range x.Images {
		if archOf[a] == runtime.GOARCH {
			return ""
		}
		arch = archOf[a]
	}
	return arch
}

// offered reports which types are sold and which are not.
func (d *Driver) offered(x *index, sales []sale) engine.Finding {
	f := engine.Finding{Name: "types"}
	sold, zones, unpriced := map[string]bool{}, map[string]bool{}, 0
	for _, s := range sales {
		sold[s.kind.Name], zones[s.zone.Name] = true, true
		if !s.quote.Priced {
			unpriced++
		}
	}
	if arch := x.otherImage(); len(sales) == 0 && d.with.Image != "" && arch != "" {
		f.Text = fmt.Sprintf("with: image is %q, of %s, and this program, which its machines run as their agent, is of %s: "+
			"write one of that architecture, or none for AWS' Deep Learning AMI", d.with.Image, arch, runtime.GOARCH)
		return f
	}
	if len(sales) == 0 {
		f.Text = fmt.Sprintf(
			"none of %s is sold in the zones of the subnets for the image's and the server's architecture (%s): "+
				"write other types, subnets or image under with",
			strings.Join(d.with.Types, ", "),
			runtime.GOARCH,
		)
		return f
	}
	mixed := d.mixed(sales)
	f.OK = unpriced < len(sales) && mixed == ""
	f.Text = fmt.Sprintf("%d types in %d zones, %d offers", len(sold), len(zones), len(sales))
	var lacks []string
	for _, k := range x.Types {
		if !sold[k.Name] && len(lacks) < 5 {
			lacks = append(lacks, k.Name)
		}
	}
	if len(lacks) > 0 {
		f.Text += fmt.Sprintf("; not sold, for their zones or architecture: %s", strings.Join(lacks, ", "))
	}
	for _, p := range d.with.Types {
		if !slices.ContainsFunc(x.Types, func(k stock.Type) bool { ok, _ := path.Match(p, k.Name); return ok }) {
			f.Text += fmt.Sprintf("; %s of with.types is no type that %s has", p, d.with.Region)
		}
	}
	if unpriced > 0 {
		f.Text += fmt.Sprintf("; %d offers have no price that anybody says, and are not rented", unpriced)
		if !x.DiskKnown {
			f.Text += ": that of disks is not known: write disk_rate under with, dollars of a GiB of gp3 and month"
		}
	}
	if mixed != "" {
		f.Text += "; " + mixed
	}
	return f
}

// signs reports whether machines can prove their identity.
func (d *Driver) signs() engine.Finding {
	if _, err := signerOf(&d.with); err != nil {
		return engine.Finding{Name: "identity", Text: err.Error()}
	}
	return engine.Finding{
		Name: "identity",
		OK:   true,
		Text: "the certificate is known by which AWS signs who a machine is",
	}
}

// isDry reports whether an error says that a dry run would have succeeded.
func isDry(err error) bool { return account.CodeOf(err) == "DryRunOperation" }

// tries starts a machine of an offer as a dry run.
func (d *Driver) tries(ctx context.Context, a *account.Client, s *sale) engine.Finding {
	f := engine.Finding{Name: "launch, " + string(s.offer.Capacity)}
	in := &ec2.RunInstancesInput{DryRun: sdk.Bool(true), MinCount: sdk.Int32(1), MaxCount: sdk.Int32(1),
		ImageId: sdk.String(
			s.image.ID,
		), InstanceType: types.InstanceType(s.kind.Name), SubnetId: sdk.String(s.zone.Subnet),
		MetadataOptions: &types.InstanceMetadataOptionsRequest{HttpTokens: types.HttpTokensStateRequired},
		BlockDeviceMappings: []types.BlockDeviceMapping{
			{DeviceName: sdk.String(s.image.Root), Ebs: &types.EbsBlockDevice{
				VolumeSize: sdk.Int32(
					int32(d.with.DiskSize / size.GiB),
				), VolumeType: types.VolumeTypeGp3, Encrypted: sdk.Bool(true)}},
		},
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeInstance,
			Tags: tagsOf(map[string]string{tagEngine: d.name})}}}
	if d.with.SecurityGroup != "" {
		in.SecurityGroupIds = []string{d.with.SecurityGroup}
	}
	if s.offer.Capacity == market.Spot {
		in.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot}
	}
	_, err := a.EC2.RunInstances(ctx, in)
	switch {
	case isDry(err):
		f.OK, f.Text = true, fmt.Sprintf(
			"a dry run of %s in %s with %s succeeds",
			s.kind.Name,
			s.zone.Name,
			s.image.ID,
		)
	case err == nil:
		f.Text = "the dry run was no dry run: look for a machine in the console"
	default:
		f.Text = fmt.Sprintf(
			"%s in %s with %s: %v",
			s.kind.Name,
			s.zone.Name,
			s.image.ID,
			d.explain(orRefused(d, err)),
		)
	}
	return f
}

// rights tries the other actions as dry runs.
func (d *Driver) rights(ctx context.Context, a *account.Client) engine.Finding {
	f := engine.Finding{Name: "rights"}
	yes, probe := sdk.Bool(true), sdk.String("scrimp-probe")
	var lacks []string
	for _, try := range []struct {
		action string
		do     func() error
	}{
		{"ec2:CreateLaunchTemplate", func() error {
			_, err := a.EC2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{DryRun: yes, LaunchTemplateName: probe,
				LaunchTemplateData: &types.RequestLaunchTemplateData{
					InstanceInitiatedShutdownBehavior: types.ShutdownBehaviorTerminate}})
			return err
		}},
		{"ec2:DescribeVolumes", func() error {
			_, err := a.EC2.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{DryRun: yes})
			return err
		}},
		{"ec2:DescribeCapacityReservations", func() error {
			if len(d.with.Reservations) == 0 {
				return nil
			}
			_, err := a.EC2.DescribeCapacityReservations(ctx, &ec2.DescribeCapacityReservationsInput{DryRun: yes})
			return err
		}},
		{"ec2:DescribeInstances", func() error {
			_, err := a.EC2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{DryRun: yes})
			return err
		}},
		{"ec2:DescribeSpotInstanceRequests", func() error {
			_, err := a.EC2.DescribeSpotInstanceRequests(ctx, &ec2.DescribeSpotInstanceRequestsInput{DryRun: yes})
			return err
		}},
		{"ec2:DescribeSecurityGroups", func() error {
			_, err := a.EC2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{DryRun: yes})
			return err
		}},
	} {
		switch err := try.do(); {
		case err == nil, isDry(err):
		case slices.Contains(account.DeniedCodes, account.CodeOf(err)):
			lacks = append(lacks, try.action)
		default:
			f.Text = try.action + ": " + d.explain(err).Error()
			return f
		}
	}
	if len(lacks) > 0 {
		f.Text = fmt.Sprintf("not allowed: %s. An administrator of the account gives this policy to %s:\n%s",
			strings.Join(lacks, ", "), a.User, d.policy(a))
		return f
	}
	f.OK, f.Text = true, "what was tried is allowed; this is the least policy:\n"+d.policy(a)
	return f
}

// policy returns the least policy that the engine needs in the account.
func (d *Driver) policy(a *account.Client) string {
	scope := policy.Scope{Account: a.Account, Region: d.with.Region, Installation: d.name}
	if d.with.Bucket != nil {
		scope.Bucket, scope.JobRole = d.with.Bucket.Bucket, setting.RoleOf(d.with.JobRole).JobRole
	}
	p := policy.Server(scope)
	p.Statement = slices.DeleteFunc(p.Statement, func(s policy.Statement) bool { // of stores, if none is declared
		return d.with.Bucket == nil && slices.ContainsFunc(s.Action, func(a string) bool {
			return strings.HasPrefix(a, "s3:") || strings.HasPrefix(a, "sts:")
		})
	})
	return p.String()
}

// quotaOf returns the code of the vCPU quota that a type counts against. Source: docs.aws.amazon.com, Amazon EC2 user
// guide, "On-Demand Instance quotas" and "Spot Instance quotas", 2026-11.
func quotaOf(kind string, c market.Capacity) string {
	family, _, _ := strings.Cut(kind, ".")
	letters := family
	if n := strings.IndexFunc(family, func(r rune) bool { return r < 'a' || r > 'z' }); n >= 0 {
		letters = family[:n]
	}
	spot := c == market.Spot
	switch {
	case strings.HasPrefix(family, "p5"):
		return map[bool]string{true: "L-C4BD4855", false: "L-417A185B"}[spot]
	case letters == "p":
		return map[bool]string{true: "L-7212CCBC", false: "L-417A185B"}[spot]
	case letters == "g" || letters == "gr" || letters == "vt":
		return map[bool]string{true: "L-3819A6DF", false: "L-DB2E81BA"}[spot]
	case letters == "inf":
		return map[bool]string{true: "L-B5D1601B", false: "L-1945791B"}[spot]
	case letters == "trn":
		return map[bool]string{true: "L-6B0D517C", false: "L-2C3B7624"}[spot]
	case len(letters) == 1 && strings.ContainsAny(letters, "acdhimrtz"):
		return map[bool]string{true: "L-34B43A08", false: "L-1216C47A"}[spot]
	}
	return ""
}

// quotas checks whether the account may rent any of what is sold.
func (d *Driver) quotas(ctx context.Context, a *account.Client, sales []sale) engine.Finding {
	f := engine.Finding{Name: "quotas"}
	least := map[string]*sale{} // smallest machine that counts against each quota
	for n := range sales {
		s := &sales[n]
		code := quotaOf(s.kind.Name, s.offer.Capacity)
		if old := least[code]; code != "" && (old == nil || s.kind.CPUs < old.kind.CPUs) {
			least[code] = s
		}
	}
	var enough, short []string
	for _, code := range sortedKeys(least) {
		s := least[code]
		out, err := a.Quotas.GetServiceQuota(ctx, &servicequotas.GetServiceQuotaInput{ServiceCode: sdk.String("ec2"),
			QuotaCode: sdk.String(code)})
		if err != nil || out.Quota == nil || out.Quota.Value == nil {
			if slices.Contains(account.DeniedCodes, account.CodeOf(err)) {
				f.OK, f.Text = true, "not looked at: servicequotas:GetServiceQuota is not allowed"
				return f
			}
			continue // the account has no value of its own there, and AWS's default is not known here
		}
		line := fmt.Sprintf("%s %v vCPUs (%s)", sdk.ToString(out.Quota.QuotaName), *out.Quota.Value, code)
		if *out.Quota.Value < float64(s.kind.CPUs) {
			short = append(
				short,
				fmt.Sprintf("%s, and %s as %s needs %d", line, s.kind.Name, s.offer.Capacity, s.kind.CPUs),
			)
		} else {
			enough = append(enough, line)
		}
	}
	if len(short) > 0 {
		f.Text = strings.Join(short, "; ") + ": ask for more under Service Quotas in the console of " + d.with.Region
		return f
	}
	f.OK, f.Text = true, strings.Join(enough, "; ")
	if len(enough) == 0 {
		f.Text = "none of its own is set for the account"
	}
	return f
}

// way reports the address at which machines look for the server.
func (d *Driver) way() engine.Finding {
	f := engine.Finding{Name: "way back", OK: true, Text: "machines look for the server at " + d.server +
		"; not tried, a first machine tries it: scrimp doctor " + d.name + " --launch"}
	if d.server == "" {
		f.OK, f.Text = false, "no server listens where machines reach it: scrimp serve --listen HOST:PORT"
	}
	return f
}

// Compare implements engine.Comparer.
func (d *Driver) Compare(ctx context.Context, text []byte) ([]engine.Finding, error) {
	m, err := made.Read(text)
	if err != nil {
		return nil, err
	}
	a, err := d.connected(ctx)
	if err != nil {
		return nil, err
	}
	return made.Compare(ctx, m, d.name, &d.with, a), nil
}
