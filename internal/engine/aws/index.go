//go:build !local

package aws

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"scrimp/internal/engine/aws/answer"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
)

// How long what was read of an account holds. Types and zones change by the week, spot prices by the minute.
const (
	typesFor  = 6 * time.Hour
	pricesFor = 24 * time.Hour
	spotFor   = time.Minute
	// pricesAgain is when the price list is asked for again that could not be read.
	pricesAgain = 10 * time.Minute
)

// index is what a region sells to the account.
type index struct {
	typesAt, pricesAt, spotAt time.Time
	types                     []kind // by name
	zones                     map[string]zone
	sold                      map[string][]string  // zones by type
	listed                    map[string]listPrice // on demand, by type
	spot                      map[spotKey]spotPrice
	disk                      money.Rate // of a GiB and month; 0 with diskKnown false
	diskKnown                 bool
	images                    map[types.ArchitectureType]machineImage
	held                      []held // reservations of capacity; nil: none are set, or they were never read
	heldAt                    time.Time
	heldErr                   error // why they could not be read last
}

// kind is an instance type.
type kind struct {
	name         string
	cpus         int
	memory       size.Bytes
	accelerator  string
	accelerators int
	video        size.Bytes // memory of one accelerator
	arch         types.ArchitectureType
	spot, demand bool
	cluster      bool // may stand in a cluster placement group
}

type zone struct {
	name, id, subnet, vpc string
	public                bool // machines get a public address there
}

// listPrice is what an hour of a type costs on demand.
type listPrice struct {
	rate   money.Rate
	at     time.Time
	source string
}

type spotKey struct{ zone, kind string }

type spotPrice struct {
	rate money.Rate
	at   time.Time
}

type machineImage struct {
	id, name, root string
	at             time.Time
}

// indexed is what the region sells, read anew where it is too old.
func (d *Driver) indexed(ctx context.Context) (*index, error) {
	a, err := d.connected(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case d.looking <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-d.looking }()
	d.mu.Lock()
	x := index{}
	if d.index != nil {
		x = *d.index
	}
	d.mu.Unlock()
	now := d.now()
	if now.Sub(x.typesAt) > typesFor {
		if err := d.readTypes(ctx, a, &x); err != nil {
			return nil, err
		}
		x.typesAt = now
	}
	if now.Sub(x.pricesAt) > pricesFor {
		if err := d.readPrices(ctx, a, &x); err != nil {
			return nil, err
		}
	}
	if now.Sub(x.spotAt) > spotFor {
		if x.spot, err = d.readSpot(ctx, a, &x); err != nil {
			return nil, err
		}
		x.spotAt = now
	}
	d.readHeld(ctx, a, &x, now)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.index = &x
	return &x, nil
}

// readTypes reads which types there are, and in which zones they are sold and machines may begin.
func (d *Driver) readTypes(ctx context.Context, a *api, x *index) error {
	for _, by := range d.with.typeFilters() {
		x.types = nil
		if err := d.readKinds(ctx, a, x, by); err != nil {
			return err
		}
		names := map[string]bool{}
		for _, k := range x.types {
			names[k.name] = true
		}
		if d.with.covered(maps.Keys(names)) {
			break
		}
	}
	if len(x.types) == 0 {
		return fmt.Errorf("%s has none of the types %s: write others under with.types", d.with.Region,
			strings.Join(d.with.Types, ", "))
	}
	slices.SortFunc(x.types, func(a, b kind) int { return strings.Compare(a.name, b.name) })
	if err := d.readZones(ctx, a, x); err != nil {
		return err
	}
	for _, by := range d.with.typeFilters() {
		x.sold = map[string][]string{}
		if err := d.readSold(ctx, a, x, by); err != nil {
			return err
		}
		if d.with.covered(maps.Keys(x.sold)) {
			break
		}
	}
	for _, list := range x.sold {
		slices.Sort(list)
	}
	return d.readImages(ctx, a, x)
}

// typeFilters are what types are asked for by, and what by where that finds too few: other services than AWS may take
// a pattern for a name.
func (w *With) typeFilters() [][]types.Filter {
	by := [][]types.Filter{{{Name: sdk.String("instance-type"), Values: w.patterns()}}}
	if w.Endpoint != "" && slices.ContainsFunc(w.Types, isPattern) {
		by = append(by, nil)
	}
	return by
}

// covered reports whether each of the types that may be rented is there, for a pattern any.
func (w *With) covered(there iter.Seq[string]) bool {
	missing := slices.Clone(w.Types)
	for name := range there {
		missing = slices.DeleteFunc(missing, func(p string) bool { ok, _ := path.Match(p, name); return ok })
	}
	return len(missing) == 0
}

func (d *Driver) readKinds(ctx context.Context, a *api, x *index, by []types.Filter) error {
	pages := ec2.NewDescribeInstanceTypesPaginator(a.ec2, &ec2.DescribeInstanceTypesInput{Filters: by})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, answer.Lean)
		if err != nil {
			return err
		}
		for n := range page.InstanceTypes {
			if k, ok := kindOf(&page.InstanceTypes[n]); ok && d.with.wants(k.name) {
				x.types = append(x.types, k)
			}
		}
	}
	return nil
}

func (d *Driver) readSold(ctx context.Context, a *api, x *index, by []types.Filter) error {
	pages := ec2.NewDescribeInstanceTypeOfferingsPaginator(a.ec2, &ec2.DescribeInstanceTypeOfferingsInput{
		LocationType: types.LocationTypeAvailabilityZone, Filters: by})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, answer.Lean)
		if err != nil {
			return err
		}
		for _, o := range page.InstanceTypeOfferings {
			if _, has := x.zones[sdk.ToString(o.Location)]; has && d.with.wants(string(o.InstanceType)) {
				x.sold[string(o.InstanceType)] = append(x.sold[string(o.InstanceType)], sdk.ToString(o.Location))
			}
		}
	}
	return nil
}

// kindOf is what EC2 says of a type; false: it says too little to rent one.
func kindOf(t *types.InstanceTypeInfo) (kind, bool) {
	k := kind{
		name:   string(t.InstanceType),
		cpus:   0,
		spot:   slices.Contains(t.SupportedUsageClasses, types.UsageClassTypeSpot),
		demand: slices.Contains(t.SupportedUsageClasses, types.UsageClassTypeOnDemand),
	}
	if t.VCpuInfo == nil || t.MemoryInfo == nil || t.ProcessorInfo == nil {
		return k, false
	}
	k.cpus = int(sdk.ToInt32(t.VCpuInfo.DefaultVCpus))
	k.memory = size.Bytes(sdk.ToInt64(t.MemoryInfo.SizeInMiB)) * size.MiB
	for _, a := range []types.ArchitectureType{types.ArchitectureTypeX8664, types.ArchitectureTypeArm64} {
		if slices.Contains(t.ProcessorInfo.SupportedArchitectures, a) {
			k.arch = a
			break
		}
	}
	if t.PlacementGroupInfo != nil {
		k.cluster = slices.Contains(t.PlacementGroupInfo.SupportedStrategies, types.PlacementGroupStrategyCluster)
	}
	if t.GpuInfo != nil && len(t.GpuInfo.Gpus) == 1 {
		g := t.GpuInfo.Gpus[0]
		k.accelerators = int(sdk.ToInt32(g.Count))
		if g.MemoryInfo != nil {
			k.video = size.Bytes(sdk.ToInt32(g.MemoryInfo.SizeInMiB)) * size.MiB
		}
		k.accelerator = acceleratorName(k.name, sdk.ToString(g.Manufacturer), sdk.ToString(g.Name), k.video)
	}
	known := k.cpus > 0 && k.memory > 0 && k.arch != "" && !sdk.ToBool(t.BareMetal)
	return k, known
}

// readZones finds the subnet of each zone in which machines may begin.
func (d *Driver) readZones(ctx context.Context, a *api, x *index) error {
	in := &ec2.DescribeSubnetsInput{SubnetIds: d.with.Subnets}
	if len(d.with.Subnets) == 0 {
		in.Filters = []types.Filter{{Name: sdk.String("default-for-az"), Values: []string{"true"}}}
	}
	x.zones = map[string]zone{}
	pages := ec2.NewDescribeSubnetsPaginator(a.ec2, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, s := range page.Subnets {
			name := sdk.ToString(s.AvailabilityZone)
			if old, twice := x.zones[name]; twice && old.subnet < sdk.ToString(s.SubnetId) {
				continue // of several in a zone the first by its id, always the same
			}
			x.zones[name] = zone{name, sdk.ToString(s.AvailabilityZoneId), sdk.ToString(s.SubnetId), sdk.ToString(s.VpcId),
				d.with.public(sdk.ToBool(s.MapPublicIpOnLaunch))}
		}
	}
	if len(x.zones) == 0 {
		return fmt.Errorf(
			"%s has no default subnet: write subnets under with, one for each zone, or make the default network "+
				"(aws ec2 create-default-vpc)",
			d.with.Region,
		)
	}
	vpc := ""
	for _, z := range x.zones {
		if vpc != "" && z.vpc != vpc {
			return fmt.Errorf(
				"subnets of with are of two networks, %s and %s: machines of a gang would not reach each other: "+
					"write those of one",
				vpc,
				z.vpc,
			)
		}
		vpc = z.vpc
	}
	return nil
}

// The AMIs that machines begin from where with has none: AWS' own, with the drivers for NVIDIA's GPUs. Source:
// docs.aws.amazon.com/dlami, "Release notes", names of the images, 2026-11.
var usualImages = map[types.ArchitectureType]string{
	types.ArchitectureTypeX8664: "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 22.04) *",
	types.ArchitectureTypeArm64: "Deep Learning ARM64 Base OSS Nvidia Driver GPU AMI (Ubuntu 22.04) *",
}

// readImages finds the AMI for each architecture.
func (d *Driver) readImages(ctx context.Context, a *api, x *index) error {
	x.images = map[types.ArchitectureType]machineImage{}
	in := &ec2.DescribeImagesInput{ImageIds: []string{d.with.Image}}
	if d.with.Image == "" {
		in = &ec2.DescribeImagesInput{Owners: []string{"amazon"}, Filters: []types.Filter{
			{Name: sdk.String("name"), Values: []string{usualImages[types.ArchitectureTypeX8664],
				usualImages[types.ArchitectureTypeArm64]}},
			{Name: sdk.String("state"), Values: []string{"available"}}}}
	}
	out, err := a.ec2.DescribeImages(ctx, in)
	if err != nil {
		return err
	}
	for _, i := range out.Images {
		at, err := time.Parse(time.RFC3339, sdk.ToString(i.CreationDate))
		arch := types.ArchitectureType(i.Architecture)
		if old, has := x.images[arch]; err != nil && d.with.Image == "" || has && !at.After(old.at) {
			continue
		}
		x.images[arch] = machineImage{
			sdk.ToString(i.ImageId),
			sdk.ToString(i.Name),
			sdk.ToString(i.RootDeviceName),
			at,
		}
	}
	if len(x.images) == 0 {
		return fmt.Errorf("%s has no %s: write the id of an AMI of that region under with.image", d.with.Region,
			cmp.Or(d.with.Image, "Deep Learning Base AMI of AWS'"))
	}
	return nil
}

// readSpot reads what a machine of each type costs in each zone as spot now.
func (d *Driver) readSpot(ctx context.Context, a *api, x *index) (map[spotKey]spotPrice, error) {
	found := map[spotKey]spotPrice{}
	now := d.now()
	in := &ec2.DescribeSpotPriceHistoryInput{
		StartTime:           &now,
		EndTime:             &now,
		ProductDescriptions: []string{linuxProduct},
	}
	if len(x.types) <= 100 { // as many as one request may name
		for _, k := range x.types {
			in.InstanceTypes = append(in.InstanceTypes, types.InstanceType(k.name))
		}
	}
	pages := ec2.NewDescribeSpotPriceHistoryPaginator(a.ec2, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, answer.Lean)
		if err != nil {
			return nil, err
		}
		for _, p := range page.SpotPriceHistory {
			key := spotKey{sdk.ToString(p.AvailabilityZone), string(p.InstanceType)}
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

const linuxProduct = "Linux/UNIX"
