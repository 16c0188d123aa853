//go:build !local

// Package stock reads what an AWS region sells to an account: instance types, zones, images, and on-demand and spot
// prices.
package stock

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"scrimp/internal/engine/aws/account"
	"scrimp/internal/engine/aws/ec2decode"
	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// How long data about an account stays valid. Types and zones change by the week, spot prices by the minute.
const (
	TypesFor  = 6 * time.Hour
	PricesFor = 24 * time.Hour
	SpotFor   = time.Minute
	// pricesAgain is when an unreadable price list is requested again.
	pricesAgain = 10 * time.Minute
)

// Stock is what a region sells to the account.
type Stock struct {
	TypesAt, PricesAt, SpotAt time.Time
	Types                     []Type // by name
	Zones                     map[string]Zone
	Sold                      map[string][]string // zones by type
	Listed                    map[string]Price    // on-demand, by type
	Spot                      map[SpotKey]spotPrice
	Disk                      money.Rate // per GiB and month; valid if DiskKnown
	DiskKnown                 bool
	Volumes                   map[types.VolumeType]money.Rate // other disks, per GiB and month; without entry: unknown
	Images                    map[types.ArchitectureType]Image
}

// Reader reads the stock of an engine's region.
type Reader struct {
	Name string // of the engine
	With *setting.With
	Now  func() time.Time
	Log  *slog.Logger
}

// Type is an instance type.
type Type struct {
	Name         string
	CPUs         int
	Memory       size.Bytes
	Accelerator  string
	Accelerators int
	Video        size.Bytes // memory of one accelerator
	Arch         types.ArchitectureType
	Spot, Demand bool
	Cluster      bool // supports cluster placement groups
}

// Zone is an availability zone, with the subnet in which machines start there.
type Zone struct {
	Name, ID, Subnet, VPC string
	Public                bool // machines get a public address there
}

// Price is the hourly on-demand price of a type.
type Price struct {
	Rate   money.Rate
	At     time.Time
	Source string
}

// SpotKey identifies a spot price.
type SpotKey struct{ Zone, Type string }

type spotPrice struct {
	Rate money.Rate
	at   time.Time
}

// Image is an AMI.
type Image struct {
	ID, name, Root string
	at             time.Time
}

// ReadTypes reads the available types, and the zones in which they are sold and machines may start.
func (d *Reader) ReadTypes(ctx context.Context, a *account.Client, x *Stock) error {
	for _, by := range typeFilters(d.With) {
		x.Types = nil
		if err := d.readKinds(ctx, a, x, by); err != nil {
			return err
		}
		names := map[string]bool{}
		for _, k := range x.Types {
			names[k.Name] = true
		}
		if covered(d.With, maps.Keys(names)) {
			break
		}
	}
	if len(x.Types) == 0 {
		return fmt.Errorf("%s has none of the types %s: write others under with.types", d.With.Region,
			strings.Join(d.With.Types, ", "))
	}
	slices.SortFunc(x.Types, func(a, b Type) int { return strings.Compare(a.Name, b.Name) })
	if err := d.readZones(ctx, a, x); err != nil {
		return err
	}
	for _, by := range typeFilters(d.With) {
		x.Sold = map[string][]string{}
		if err := d.readSold(ctx, a, x, by); err != nil {
			return err
		}
		if covered(d.With, maps.Keys(x.Sold)) {
			break
		}
	}
	for _, list := range x.Sold {
		slices.Sort(list)
	}
	return d.readImages(ctx, a, x)
}

// typeFilters returns the filters for types, and fallbacks if they find too few: services other than AWS may take a
// pattern for a name.
func typeFilters(w *setting.With) [][]types.Filter {
	by := [][]types.Filter{{{Name: sdk.String("instance-type"), Values: w.Patterns()}}}
	if w.Endpoint != "" && slices.ContainsFunc(w.Types, setting.IsPattern) {
		by = append(by, nil)
	}
	return by
}

// covered reports whether every wanted type is available, for a pattern at least one.
func covered(w *setting.With, there iter.Seq[string]) bool {
	missing := slices.Clone(w.Types)
	for name := range there {
		missing = slices.DeleteFunc(missing, func(p string) bool { ok, _ := path.Match(p, name); return ok })
	}
	return len(missing) == 0
}

func (d *Reader) readKinds(ctx context.Context, a *account.Client, x *Stock, by []types.Filter) error {
	pages := ec2.NewDescribeInstanceTypesPaginator(a.EC2, &ec2.DescribeInstanceTypesInput{Filters: by})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, ec2decode.Lean)
		if err != nil {
			return err
		}
		for n := range page.InstanceTypes {
			if k, ok := kindOf(&page.InstanceTypes[n]); ok && d.With.Wants(k.Name) {
				x.Types = append(x.Types, k)
			}
		}
	}
	return nil
}

func (d *Reader) readSold(ctx context.Context, a *account.Client, x *Stock, by []types.Filter) error {
	pages := ec2.NewDescribeInstanceTypeOfferingsPaginator(a.EC2, &ec2.DescribeInstanceTypeOfferingsInput{
		LocationType: types.LocationTypeAvailabilityZone, Filters: by})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, ec2decode.Lean)
		if err != nil {
			return err
		}
		for _, o := range page.InstanceTypeOfferings {
			if _, has := x.Zones[sdk.ToString(o.Location)]; has && d.With.Wants(string(o.InstanceType)) {
				x.Sold[string(o.InstanceType)] = append(x.Sold[string(o.InstanceType)], sdk.ToString(o.Location))
			}
		}
	}
	return nil
}

// kindOf converts a type; false if EC2 gives too little information to rent one.
func kindOf(t *types.InstanceTypeInfo) (Type, bool) {
	k := Type{
		Name:   string(t.InstanceType),
		CPUs:   0,
		Spot:   slices.Contains(t.SupportedUsageClasses, types.UsageClassTypeSpot),
		Demand: slices.Contains(t.SupportedUsageClasses, types.UsageClassTypeOnDemand),
	}
	if t.VCpuInfo == nil || t.MemoryInfo == nil || t.ProcessorInfo == nil {
		return k, false
	}
	k.CPUs = int(sdk.ToInt32(t.VCpuInfo.DefaultVCpus))
	k.Memory = size.Bytes(sdk.ToInt64(t.MemoryInfo.SizeInMiB)) * size.MiB
	for _, a := range []types.ArchitectureType{types.ArchitectureTypeX8664, types.ArchitectureTypeArm64} {
		if slices.Contains(t.ProcessorInfo.SupportedArchitectures, a) {
			k.Arch = a
			break
		}
	}
	if t.PlacementGroupInfo != nil {
		k.Cluster = slices.Contains(t.PlacementGroupInfo.SupportedStrategies, types.PlacementGroupStrategyCluster)
	}
	if t.GpuInfo != nil && len(t.GpuInfo.Gpus) == 1 {
		g := t.GpuInfo.Gpus[0]
		k.Accelerators = int(sdk.ToInt32(g.Count))
		if g.MemoryInfo != nil {
			k.Video = size.Bytes(sdk.ToInt32(g.MemoryInfo.SizeInMiB)) * size.MiB
		}
		k.Accelerator = acceleratorName(k.Name, sdk.ToString(g.Manufacturer), sdk.ToString(g.Name), k.Video)
	}
	known := k.CPUs > 0 && k.Memory > 0 && k.Arch != "" && !sdk.ToBool(t.BareMetal)
	return k, known
}

// readZones finds the subnet of each zone in which machines may start.
func (d *Reader) readZones(ctx context.Context, a *account.Client, x *Stock) error {
	in := &ec2.DescribeSubnetsInput{SubnetIds: d.With.Subnets}
	if len(d.With.Subnets) == 0 {
		in.Filters = []types.Filter{{Name: sdk.String("default-for-az"), Values: []string{"true"}}}
	}
	x.Zones = map[string]Zone{}
	pages := ec2.NewDescribeSubnetsPaginator(a.EC2, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, s := range page.Subnets {
			name := sdk.ToString(s.AvailabilityZone)
			if old, twice := x.Zones[name]; twice && old.Subnet < sdk.ToString(s.SubnetId) {
				continue // of several in a zone always the first by id
			}
			x.Zones[name] = Zone{name, sdk.ToString(s.AvailabilityZoneId), sdk.ToString(s.SubnetId), sdk.ToString(s.VpcId),
				d.With.Public(sdk.ToBool(s.MapPublicIpOnLaunch))}
		}
	}
	if len(x.Zones) == 0 {
		return fmt.Errorf(
			"%s has no default subnet: write subnets under with, one for each zone, or make the default network "+
				"(aws ec2 create-default-vpc)",
			d.With.Region,
		)
	}
	vpc := ""
	for _, z := range x.Zones {
		if vpc != "" && z.VPC != vpc {
			return fmt.Errorf(
				"subnets under with belong to two networks, %s and %s: machines of a gang would not reach each other: "+
					"write the subnets of one network",
				vpc,
				z.VPC,
			)
		}
		vpc = z.VPC
	}
	return nil
}

// The default AMIs: AWS's own, with the drivers for NVIDIA GPUs. Source: docs.aws.amazon.com/dlami, "Release notes",
// names of the images, 2026-11.
var usualImages = map[types.ArchitectureType]string{
	types.ArchitectureTypeX8664: "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 22.04) *",
	types.ArchitectureTypeArm64: "Deep Learning ARM64 Base OSS Nvidia Driver GPU AMI (Ubuntu 22.04) *",
}

// readImages finds the AMI for each architecture.
func (d *Reader) readImages(ctx context.Context, a *account.Client, x *Stock) error {
	x.Images = map[types.ArchitectureType]Image{}
	in := &ec2.DescribeImagesInput{ImageIds: []string{d.With.Image}}
	if d.With.Image == "" {
		in = &ec2.DescribeImagesInput{Owners: []string{"amazon"}, Filters: []types.Filter{
			{Name: sdk.String("name"), Values: []string{usualImages[types.ArchitectureTypeX8664],
				usualImages[types.ArchitectureTypeArm64]}},
			{Name: sdk.String("state"), Values: []string{"available"}}}}
	}
	out, err := a.EC2.DescribeImages(ctx, in)
	if err != nil {
		return err
	}
	for _, i := range out.Images {
		at, err := time.Parse(time.RFC3339, sdk.ToString(i.CreationDate))
		arch := types.ArchitectureType(i.Architecture)
		if old, has := x.Images[arch]; err != nil && d.With.Image == "" || has && !at.After(old.at) {
			continue
		}
		x.Images[arch] = Image{
			sdk.ToString(i.ImageId),
			sdk.ToString(i.Name),
			sdk.ToString(i.RootDeviceName),
			at,
		}
	}
	if len(x.Images) == 0 {
		return fmt.Errorf("%s has no %s: write the id of an AMI of that region under with.image", d.With.Region,
			cmp.Or(d.With.Image, "Deep Learning Base AMI of AWS'"))
	}
	return nil
}

// ReadSpot reads the current spot price of each type in each zone.
func (d *Reader) ReadSpot(ctx context.Context, a *account.Client, x *Stock) (map[SpotKey]spotPrice, error) {
	found := map[SpotKey]spotPrice{}
	now := d.Now()
	in := &ec2.DescribeSpotPriceHistoryInput{
		StartTime:           &now,
		EndTime:             &now,
		ProductDescriptions: []string{LinuxProduct},
	}
	if len(x.Types) <= 100 { // the most that one request may name
		for _, k := range x.Types {
			in.InstanceTypes = append(in.InstanceTypes, types.InstanceType(k.Name))
		}
	}
	pages := ec2.NewDescribeSpotPriceHistoryPaginator(a.EC2, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, ec2decode.Lean)
		if err != nil {
			return nil, err
		}
		for _, p := range page.SpotPriceHistory {
			key := SpotKey{sdk.ToString(p.AvailabilityZone), string(p.InstanceType)}
			rate, err := money.ParseRate(sdk.ToString(p.SpotPrice))
			if err != nil || rate <= 0 || p.Timestamp == nil {
				continue // unknown, and not free
			}
			if old, has := found[key]; !has || p.Timestamp.After(old.at) {
				found[key] = spotPrice{rate, *p.Timestamp}
			}
		}
	}
	return found, nil
}

// LinuxProduct is EC2's name for Linux machines in its history of spot prices.
const LinuxProduct = "Linux/UNIX"

// ArchOf gives Go's names of architectures: machines run the server's own program.
var ArchOf = map[types.ArchitectureType]string{types.ArchitectureTypeX8664: "amd64",
	types.ArchitectureTypeArm64: "arm64"}

// OfferID returns the name of the offer of a machine in a zone.
func OfferID(engine, zone, kind string, c market.Capacity) market.OfferID {
	return market.OfferID(engine + "/" + zone + "/" + kind + "/" + string(c))
}
