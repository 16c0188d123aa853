//go:build !local

// Package examine checks whether an engine can rent in its account: rights, quotas, types, reservations and
// commitments.
package examine

import (
	"context"
	"fmt"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/account"
	"scrimp/internal/engine/aws/identity"
	"scrimp/internal/engine/aws/policy"
	"scrimp/internal/engine/aws/sale"
	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/engine/aws/stock"
	"scrimp/internal/engine/aws/tag"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// Examiner checks what an engine needs in its account. It creates and rents nothing.
type Examiner struct {
	Engine string // its name
	Server string // the server's address, as given to agents
	With   *setting.With
	Now    func() time.Time // wall time
	Seller *sale.Seller
	Client *account.Client
	Index  *sale.Index // set for all checks but Way
}

// explain adds the meaning of an EC2 error for this engine, and the fix.
func (e *Examiner) explain(err error) error { return account.Explain(e.Engine, e.With, err) }

// GroupThere reports whether the configured security group exists.
func (e *Examiner) GroupThere(ctx context.Context) engine.Finding {
	f := engine.Finding{Name: "group", OK: true, Text: "the security group " + e.With.SecurityGroup + " is there"}
	in := &ec2.DescribeSecurityGroupsInput{GroupIds: []string{e.With.SecurityGroup}}
	_, err := e.Client.EC2.DescribeSecurityGroups(ctx, in)
	if err != nil {
		f.OK, f.Text = false, e.explain(err).Error()
	}
	return f
}

// otherImage returns the architecture of the images if none has the agent's.
func otherImage(x *sale.Index) (arch string) {
	for a := range x.Images {
		if stock.ArchOf[a] == runtime.GOARCH {
			return ""
		}
		arch = stock.ArchOf[a]
	}
	return arch
}

// unsold names a few types that are not sold.
func (e *Examiner) unsold(sold map[string]bool) string {
	var lacks []string
	for _, k := range e.Index.Types {
		if !sold[k.Name] && len(lacks) < 5 {
			lacks = append(lacks, k.Name)
		}
	}
	if len(lacks) == 0 {
		return ""
	}
	return "; not sold, for their zones or architecture: " + strings.Join(lacks, ", ")
}

// Offered reports which types are sold and which are not.
func (e *Examiner) Offered(sales []sale.Sale) engine.Finding {
	f := engine.Finding{Name: "types"}
	sold, zones, unpriced := map[string]bool{}, map[string]bool{}, 0
	for _, s := range sales {
		sold[s.Kind.Name], zones[s.Zone.Name] = true, true
		if !s.Quote.Priced {
			unpriced++
		}
	}
	if arch := otherImage(e.Index); len(sales) == 0 && e.With.Image != "" && arch != "" {
		f.Text = fmt.Sprintf("with: image is %q, of %s, and this program, which its machines run as their agent, is of %s: "+
			"write one of that architecture, or none for AWS' Deep Learning AMI", e.With.Image, arch, runtime.GOARCH)
		return f
	}
	if len(sales) == 0 {
		f.Text = fmt.Sprintf(
			"none of %s is sold in the zones of the subnets for the image's and the server's architecture (%s): "+
				"write other types, subnets or image under with",
			strings.Join(e.With.Types, ", "),
			runtime.GOARCH,
		)
		return f
	}
	mixed := e.Seller.Mixed(sales)
	f.OK = unpriced < len(sales) && mixed == ""
	f.Text = fmt.Sprintf("%d types in %d zones, %d offers", len(sold), len(zones), len(sales)) + e.unsold(sold)
	for _, p := range e.With.Types {
		if !slices.ContainsFunc(e.Index.Types, func(k stock.Type) bool { ok, _ := path.Match(p, k.Name); return ok }) {
			f.Text += fmt.Sprintf("; %s under with.types matches no type in %s", p, e.With.Region)
		}
	}
	if unpriced > 0 {
		f.Text += fmt.Sprintf("; %d offers have an unknown price, and scrimp does not rent them", unpriced)
		if !e.Index.DiskKnown {
			f.Text += ": the price of disks is unknown: write disk_rate under with, in dollars per GiB of gp3 and month"
		}
	}
	if mixed != "" {
		f.Text += "; " + mixed
	}
	return f
}

// Signs reports whether machines can prove their identity.
func (e *Examiner) Signs() engine.Finding {
	if _, err := identity.SignerOf(e.With); err != nil {
		return engine.Finding{Name: "identity", Text: err.Error()}
	}
	return engine.Finding{
		Name: "identity",
		OK:   true,
		Text: "the certificate with which AWS signs identity documents is known",
	}
}

// isDry reports whether an error says that a dry run would have succeeded.
func isDry(err error) bool { return account.CodeOf(err) == "DryRunOperation" }

// Tries starts a machine of an offer as a dry run.
func (e *Examiner) Tries(ctx context.Context, s *sale.Sale) engine.Finding {
	f := engine.Finding{Name: "launch, " + string(s.Offer.Capacity)}
	in := &ec2.RunInstancesInput{DryRun: sdk.Bool(true), MinCount: sdk.Int32(1), MaxCount: sdk.Int32(1),
		ImageId: sdk.String(
			s.Image.ID,
		), InstanceType: types.InstanceType(s.Kind.Name), SubnetId: sdk.String(s.Zone.Subnet),
		MetadataOptions: &types.InstanceMetadataOptionsRequest{HttpTokens: types.HttpTokensStateRequired},
		BlockDeviceMappings: []types.BlockDeviceMapping{
			{DeviceName: sdk.String(s.Image.Root), Ebs: &types.EbsBlockDevice{
				VolumeSize: sdk.Int32(
					int32(e.With.DiskSize / size.GiB),
				), VolumeType: types.VolumeTypeGp3, Encrypted: sdk.Bool(true)}},
		},
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeInstance,
			Tags: tag.Of(map[string]string{tag.Engine: e.Engine})}}}
	if e.With.SecurityGroup != "" {
		in.SecurityGroupIds = []string{e.With.SecurityGroup}
	}
	if s.Offer.Capacity == market.Spot {
		in.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot}
	}
	_, err := e.Client.EC2.RunInstances(ctx, in)
	switch {
	case isDry(err):
		f.OK, f.Text = true, fmt.Sprintf(
			"a dry run of %s in %s with %s succeeds",
			s.Kind.Name,
			s.Zone.Name,
			s.Image.ID,
		)
	case err == nil:
		f.Text = "the dry run has rented a machine: look for it in the console and terminate it"
	default:
		f.Text = fmt.Sprintf(
			"%s in %s with %s: %v",
			s.Kind.Name,
			s.Zone.Name,
			s.Image.ID,
			e.explain(account.OrRefused(e.Engine, e.With, err)),
		)
	}
	return f
}

// Rights tries the other actions as dry runs.
func (e *Examiner) Rights(ctx context.Context) engine.Finding {
	f := engine.Finding{Name: "rights"}
	yes, probe := sdk.Bool(true), sdk.String("scrimp-probe")
	var lacks []string
	for _, try := range []struct {
		action string
		do     func() error
	}{
		{"ec2:CreateLaunchTemplate", func() error {
			_, err := e.Client.EC2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{DryRun: yes,
				LaunchTemplateName: probe, LaunchTemplateData: &types.RequestLaunchTemplateData{
					InstanceInitiatedShutdownBehavior: types.ShutdownBehaviorTerminate}})
			return err
		}},
		{"ec2:DescribeVolumes", func() error {
			_, err := e.Client.EC2.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{DryRun: yes})
			return err
		}},
		{"ec2:DescribeCapacityReservations", func() error {
			if len(e.With.Reservations) == 0 {
				return nil
			}
			_, err := e.Client.EC2.DescribeCapacityReservations(ctx, &ec2.DescribeCapacityReservationsInput{DryRun: yes})
			return err
		}},
		{"ec2:DescribeInstances", func() error {
			_, err := e.Client.EC2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{DryRun: yes})
			return err
		}},
		{"ec2:DescribeSpotInstanceRequests", func() error {
			_, err := e.Client.EC2.DescribeSpotInstanceRequests(ctx, &ec2.DescribeSpotInstanceRequestsInput{DryRun: yes})
			return err
		}},
		{"ec2:DescribeSecurityGroups", func() error {
			_, err := e.Client.EC2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{DryRun: yes})
			return err
		}},
	} {
		switch err := try.do(); {
		case err == nil, isDry(err):
		case slices.Contains(account.DeniedCodes, account.CodeOf(err)):
			lacks = append(lacks, try.action)
		default:
			f.Text = try.action + ": " + e.explain(err).Error()
			return f
		}
	}
	if len(lacks) > 0 {
		f.Text = fmt.Sprintf("not allowed: %s. An administrator of the account gives this policy to %s:\n%s",
			strings.Join(lacks, ", "), e.Client.User, e.policy())
		return f
	}
	f.OK, f.Text = true, "what was tried is allowed; this is the least policy:\n"+e.policy()
	return f
}

// policy returns the least policy that the engine needs in the account.
func (e *Examiner) policy() string {
	scope := policy.Scope{Account: e.Client.Account, Region: e.With.Region, Installation: e.Engine}
	if e.With.Bucket != nil {
		scope.Bucket, scope.JobRole = e.With.Bucket.Bucket, setting.RoleOf(e.With.JobRole).JobRole
	}
	p := policy.Server(scope)
	p.Statement = slices.DeleteFunc(p.Statement, func(s policy.Statement) bool { // of stores, if none is declared
		return e.With.Bucket == nil && slices.ContainsFunc(s.Action, func(a string) bool {
			return strings.HasPrefix(a, "s3:") || strings.HasPrefix(a, "sts:")
		})
	})
	if x := e.With.Export; x != nil {
		p.Statement = append(p.Statement, policy.Export(policy.Scope{Bucket: x.Bucket}, x.Prefix)...)
	}
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

// Quotas checks whether the account may rent any of what is sold.
func (e *Examiner) Quotas(ctx context.Context, sales []sale.Sale) engine.Finding {
	f := engine.Finding{Name: "quotas"}
	least := map[string]*sale.Sale{} // smallest machine that counts against each quota
	for n := range sales {
		s := &sales[n]
		code := quotaOf(s.Kind.Name, s.Offer.Capacity)
		if old := least[code]; code != "" && (old == nil || s.Kind.CPUs < old.Kind.CPUs) {
			least[code] = s
		}
	}
	var enough, short []string
	for _, code := range slices.Sorted(maps.Keys(least)) {
		s := least[code]
		out, err := e.Client.Quotas.GetServiceQuota(ctx, &servicequotas.GetServiceQuotaInput{ServiceCode: sdk.String("ec2"),
			QuotaCode: sdk.String(code)})
		if err != nil || out.Quota == nil || out.Quota.Value == nil {
			if slices.Contains(account.DeniedCodes, account.CodeOf(err)) {
				f.OK, f.Text = true, "not checked: servicequotas:GetServiceQuota is not allowed"
				return f
			}
			continue // the account has no value of its own there, and AWS's default is not known here
		}
		line := fmt.Sprintf("%s %v vCPUs (%s)", sdk.ToString(out.Quota.QuotaName), *out.Quota.Value, code)
		if *out.Quota.Value < float64(s.Kind.CPUs) {
			short = append(
				short,
				fmt.Sprintf("%s, and %s as %s needs %d", line, s.Kind.Name, s.Offer.Capacity, s.Kind.CPUs),
			)
		} else {
			enough = append(enough, line)
		}
	}
	if len(short) > 0 {
		f.Text = strings.Join(short, "; ") + ": ask for more under Service Quotas in the console of " + e.With.Region
		return f
	}
	f.OK, f.Text = true, strings.Join(enough, "; ")
	if len(enough) == 0 {
		f.Text = "the account has no quotas of its own"
	}
	return f
}

// Way reports the address at which machines look for the server.
func (e *Examiner) Way() engine.Finding {
	f := engine.Finding{Name: "way back", OK: true, Text: "machines look for the server at " + e.Server +
		"; not tried, a first machine tries it: scrimp doctor " + e.Engine + " --launch"}
	if e.Server == "" {
		f.OK, f.Text = false, "no server listens at an address that machines reach: scrimp serve --listen HOST:PORT"
	}
	return f
}
