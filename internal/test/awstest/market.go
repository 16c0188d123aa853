package awstest

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/test/awstest/catalog"
)

func describeRegions(c *call) (*node, error) {
	wanted, filters := c.list("RegionName"), c.filters("region-name", "opt-in-status", "endpoint")
	c.flag("AllRegions", false)
	if err := c.ready(); err != nil {
		return nil, err
	}
	var names []string
	for _, z := range c.s.o.Zones {
		if !slices.Contains(names, z.Region) {
			names = append(names, z.Region)
		}
	}
	for _, w := range wanted {
		if !slices.Contains(names, w) {
			return nil, bad("InvalidParameterValue", "Invalid region: %s", w)
		}
	}
	names = slices.DeleteFunc(names, func(n string) bool {
		return wanted != nil && !slices.Contains(wanted, n) || !pass(filters, nil, func(f string) []string {
			return []string{map[string]string{"region-name": n, "opt-in-status": "opt-in-not-required",
				"endpoint": "ec2." + n + ".amazonaws.com"}[f]}
		})
	})
	return x("out", items("regionInfo", names, func(n string) *node {
		return x("item", x("regionName", n), x("regionEndpoint", "ec2."+n+".amazonaws.com"),
			x("optInStatus", "opt-in-not-required"))
	})), nil
}

func describeAvailabilityZones(c *call) (*node, error) {
	names, zoneIDs := c.list("ZoneName"), c.list("ZoneId")
	filters := c.filters("zone-name", "zone-id", "state", "region-name", "zone-type", "opt-in-status")
	c.flag("AllAvailabilityZones", false)
	if err := c.ready(); err != nil {
		return nil, err
	}
	zones := slices.DeleteFunc(c.s.zonesOf(c.region), func(z catalog.Zone) bool {
		return names != nil && !slices.Contains(names, z.Name) || zoneIDs != nil && !slices.Contains(zoneIDs, z.ID) ||
			!pass(filters, nil, func(f string) []string {
				return []string{map[string]string{"zone-name": z.Name, "zone-id": z.ID, "state": "available",
					"region-name": z.Region, "zone-type": "availability-zone", "opt-in-status": "opt-in-not-required"}[f]}
			})
	})
	if len(zones) < max(len(names), len(zoneIDs)) {
		return nil, bad("InvalidParameterValue", "Invalid availability zones: %v%v", names, zoneIDs)
	}
	return x("out", items("availabilityZoneInfo", zones, func(z catalog.Zone) *node {
		return x("item", x("zoneName", z.Name), x("zoneId", z.ID), x("zoneState", "available"), x("regionName", z.Region),
			x("zoneType", "availability-zone"), x("groupName", z.Region), x("networkBorderGroup", z.Region),
			x("optInStatus", "opt-in-not-required"), x("messageSet"))
	})), nil
}

// offered reports whether a type is in any zone of the region.
func (c *call) offered(t catalog.Type) bool {
	return slices.ContainsFunc(c.s.zonesOf(c.region), func(z catalog.Zone) bool { return t.In(z.Name) })
}

func describeInstanceTypes(c *call) (*node, error) {
	wanted := c.list("InstanceType")
	filters := c.filters("instance-type", "supported-usage-class", "processor-info.supported-architecture", "bare-metal",
		"current-generation", "vcpu-info.default-vcpus", "memory-info.size-in-mib", "network-info.efa-supported",
		"burstable-performance-supported", "hypervisor", "instance-storage-supported")
	if len(wanted) > 100 {
		c.fail(bad("InvalidParameterValue", "At most 100 instance types may be named"))
	}
	if wanted != nil && c.has("MaxResults") {
		c.fail(bad("InvalidParameterCombination", "The parameter MaxResults cannot be used with instance types"))
	}
	for _, w := range wanted {
		if t, ok := c.s.typeOf(w); !ok || !c.offered(t) {
			c.fail(bad("InvalidInstanceType", "The following supplied instance types do not exist: [%s]", w))
		}
	}
	var list []catalog.Type
	for _, t := range c.s.o.Types {
		if (wanted == nil || slices.Contains(wanted, t.Name)) && c.offered(t) && pass(filters, nil, t.Value) {
			list = append(list, t)
		}
	}
	chosen, next, err := page(c, number(list), numbered[catalog.Type].seq, 5, 100)
	if len(chosen) > 100 && wanted == nil { // EC2 returns at most 100 at once
		next, chosen = x("nextToken", c.token(chosen[99].n)), chosen[:100]
	}
	if err := first(c.ready(), err); err != nil {
		return nil, err
	}
	return x("out", items("instanceTypeSet", chosen,
		func(n numbered[catalog.Type]) *node { return showType(n.v) }), next), nil
}

// showType returns a type as DescribeInstanceTypes does.
func showType(t catalog.Type) *node {
	strategies := []string{"partition", "spread"}
	if !t.Burstable {
		strategies = append([]string{"cluster"}, strategies...) // source: "Placement groups", EC2 User Guide
	}
	net := x("networkInfo", x("networkPerformance", t.Network), x("maximumNetworkInterfaces", max(4, t.EFA)),
		x("maximumNetworkCards", max(1, t.EFA)), x("enaSupport", "required"), x("efaSupported", t.EFA > 0),
		x("ipv6Supported", true), x("defaultNetworkCardIndex", 0))
	if t.EFA > 0 {
		net.kids = append(net.kids, x("efaInfo", x("maximumEfaInterfaces", t.EFA)))
	}
	n := x("item", x("instanceType", t.Name), x("currentGeneration", true), x("freeTierEligible", false),
		texts("supportedUsageClasses", t.Usage()), texts("supportedRootDeviceTypes", []string{"ebs"}),
		texts("supportedVirtualizationTypes", []string{"hvm"}), x("bareMetal", t.Bare), x("hypervisor", "nitro"),
		x("processorInfo", texts("supportedArchitectures", []string{t.Arch}), x("manufacturer", t.Maker)),
		x("vCpuInfo", x("defaultVCpus", t.VCPU), x("defaultCores", t.PhysicalCores()),
			x("defaultThreadsPerCore", t.VCPU/t.PhysicalCores())), x("memoryInfo", x("sizeInMiB", t.MiB)),
		x("instanceStorageSupported", t.DiskGB > 0), net, x("placementGroupInfo", texts("supportedStrategies", strategies)),
		x("burstablePerformanceSupported", t.Burstable), x("dedicatedHostsSupported", false), x("hibernationSupported",
			false),
		x("autoRecoverySupported", t.DiskGB == 0), x("ebsInfo", x("ebsOptimizedSupport", "default"), x("nvmeSupport",
			"required")))
	if t.DiskGB > 0 {
		n.kids = append(n.kids, x("instanceStorageInfo", x("totalSizeInGB", t.DiskGB), x("nvmeSupport", "required"),
			x("disks", x("item", x("count", t.Disks), x("sizeInGB", t.DiskGB/t.Disks), x("type", "ssd")))))
	}
	if t.GPUs > 0 {
		n.kids = append(n.kids, x("gpuInfo", x("totalGpuMemoryInMiB", t.GPUs*t.GPUMiB), x("gpus", x("item", x("name", t.GPU),
			x("manufacturer", t.GPUMaker), x("count", t.GPUs), x("memoryInfo", x("sizeInMiB", t.GPUMiB))))))
	}
	return n
}

func describeInstanceTypeOfferings(c *call) (*node, error) {
	by := or(c.oneOf("LocationType", "region", "availability-zone", "availability-zone-id"), "region")
	filters := c.filters("instance-type", "location")
	type offer struct{ typ, location string }
	var list []offer
	for _, t := range c.s.o.Types {
		places := []string{c.region}
		if by != "region" {
			places = nil
			for _, z := range c.s.zonesOf(c.region) {
				if t.In(z.Name) {
					places = append(places, map[string]string{"availability-zone": z.Name, "availability-zone-id": z.ID}[by])
				}
			}
		} else if !c.offered(t) {
			continue
		}
		for _, p := range places {
			if pass(filters, nil, func(f string) []string {
				return []string{map[string]string{"instance-type": t.Name, "location": p}[f]}
			}) {
				list = append(list, offer{t.Name, p})
			}
		}
	}
	chosen, next, err := page(c, number(list), numbered[offer].seq, 5, 1000)
	if err := first(c.ready(), err); err != nil {
		return nil, err
	}
	return x("out", items("instanceTypeOfferingSet", chosen, func(n numbered[offer]) *node {
		return x("item", x("instanceType", n.v.typ), x("locationType", by), x("location", n.v.location))
	}), next), nil
}

// A spotPrice is the price of a type in a zone from one change to the next.
type spotPrice struct {
	typ  string
	zone catalog.Zone
	catalog.Step
}

// value returns what a filter compares.
func (p spotPrice) value(filter string) []string {
	return []string{map[string]string{"availability-zone": p.zone.Name, "instance-type": p.typ,
		"product-description": "Linux/UNIX", "spot-price": catalog.FormatPrice(p.Pico),
		"timestamp": p.From.Format(time.RFC3339)}[filter]}
}

// spotPrices returns the prices that held between from and to, newest first in each zone. An empty zone is every zone,
// and nil types are every type.
func (c *call) spotPrices(zone string, types []string, from, to time.Time) (list []spotPrice) {
	for _, t := range c.s.o.Types {
		if t.NoSpot || types != nil && !slices.Contains(types, t.Name) {
			continue
		}
		for _, z := range c.s.zonesOf(c.region) {
			if !t.In(z.Name) || zone != "" && zone != z.Name {
				continue
			}
			for _, h := range during(c.s.spotHistory(t.Name, z.Name), from, to) {
				if h.From.IsZero() {
					h.From = c.now.Add(-90 * 24 * time.Hour).Truncate(time.Hour)
				}
				list = append(list, spotPrice{t.Name, z, h})
			}
		}
	}
	return list
}

// describeSpotPriceHistory answers newest first, and with the price that holds at the start, as EC2 does. Source:
// DescribeSpotPriceHistory, EC2 API reference: "the response contains the last price change before the start time".
func describeSpotPriceHistory(c *call) (*node, error) {
	from, to := c.moment("StartTime"), c.moment("EndTime")
	zone, wanted, products := c.str("AvailabilityZone"), c.list("InstanceType"), c.list("ProductDescription")
	filters := c.filters("availability-zone", "instance-type", "product-description", "spot-price", "timestamp")
	if to.IsZero() || to.After(c.now) {
		to = c.now
	}
	if from.IsZero() {
		from = c.now.Add(-90 * 24 * time.Hour)
	}
	var list []spotPrice
	if products == nil || slices.Contains(products, "Linux/UNIX") ||
		slices.Contains(products, "Linux/UNIX (Amazon VPC)") {
		list = slices.DeleteFunc(c.spotPrices(zone, wanted, from, to),
			func(p spotPrice) bool { return !pass(filters, nil, p.value) })
	}
	slices.SortStableFunc(list, func(a, b spotPrice) int { return b.From.Compare(a.From) })
	chosen, next, err := page(c, number(list), numbered[spotPrice].seq, 1, 1000)
	if err := first(c.ready(), err); err != nil {
		return nil, err
	}
	if next == nil {
		next = x("nextToken", "") // EC2 ends this list with an empty token
	}
	return x("out", items("spotPriceHistorySet", chosen, func(n numbered[spotPrice]) *node {
		return x("item", x("instanceType", n.v.typ), x("productDescription", "Linux/UNIX"), x("spotPrice",
			catalog.FormatPrice(n.v.Pico)),
			x("timestamp", n.v.From), x("availabilityZone", n.v.zone.Name), x("availabilityZoneId", n.v.zone.ID))
	}), next), nil
}

// during returns the prices that held within a span, last first.
func during(h []catalog.Step, from, to time.Time) (list []catalog.Step) {
	for k, s := range h {
		if !s.From.After(to) && (k+1 == len(h) || h[k+1].From.After(from)) {
			list = append(list, s)
		}
	}
	slices.Reverse(list)
	return list
}

// getSpotPlacementScores returns 9 if every named type has room for the target, 1 if none has, and in proportion
// between.
func getSpotPlacementScores(c *call) (*node, error) {
	wanted, regions, single := c.list("InstanceType"), c.list("RegionName"), c.flag("SingleAvailabilityZone", false)
	target := c.number("TargetCapacity", 0)
	c.oneOf("TargetCapacityUnitType", "units")
	if target < 1 {
		c.fail(bad("InvalidParameterValue", "TargetCapacity has to be 1 or more"))
	}
	if len(wanted) == 0 {
		c.fail(bad("MissingParameter", "The request must contain the parameter InstanceType"))
	}
	type score struct {
		region, zone string
		n            int
	}
	var list []score
	for _, z := range c.s.o.Zones {
		if regions != nil && !slices.Contains(regions, z.Region) {
			continue
		}
		room := 0
		for _, w := range wanted {
			if t, ok := c.s.typeOf(w); ok && t.In(z.Name) && !t.NoSpot {
				n, limited := c.s.room(catalog.Pool{Type: w, Zone: z.Name, Spot: true})
				if !limited {
					n = target
				}
				room += n
			}
		}
		list = append(list, score{z.Region, z.ID, 1 + min(room, target)*8/target})
	}
	if !single {
		slices.SortStableFunc(list, func(a, b score) int {
			return cmp.Or(cmp.Compare(a.region, b.region), b.n-a.n)
		})
		list = slices.CompactFunc(list, func(a, b score) bool { return a.region == b.region })
	}
	slices.SortStableFunc(list, func(a, b score) int { return b.n - a.n })
	list = list[:min(10, len(list))] // source: "Spot placement score", EC2 User Guide: the top ten
	chosen, next, err := page(c, number(list), numbered[score].seq, 10, 1000)
	if err := first(c.ready(), err); err != nil {
		return nil, err
	}
	return x("out", items("spotPlacementScoreSet", chosen, func(n numbered[score]) *node {
		one := x("item", x("region", n.v.region), x("score", n.v.n))
		if single {
			one.kids = append(one.kids, x("availabilityZoneId", n.v.zone))
		}
		return one
	}), next), nil
}

func describeImages(c *call) (*node, error) {
	c.list("Owner")
	c.list("ExecutableBy")
	for _, name := range []string{"IncludeDeprecated", "IncludeDisabled"} {
		c.flag(name, false)
	}
	var list []owned[catalog.Image]
	for k, i := range c.s.o.Images {
		list = append(list, owned[catalog.Image]{k, i.ID, nil, i})
	}
	return describe(c, "ImageId", "", "InvalidAMIID", "image", "imagesSet", list,
		[]string{"name", "architecture", "image-id", "state", "owner-alias", "root-device-type", "virtualization-type",
			"is-public"},
		func(i catalog.Image, name string) []string {
			return []string{map[string]string{"name": i.Name, "architecture": i.Arch, "image-id": i.ID, "state": "available",
				"owner-alias": "amazon", "root-device-type": "ebs", "virtualization-type": "hvm", "is-public": "true"}[name]}
		}, func(i catalog.Image) *node {
			return x("item", x("imageId", i.ID), x("name", i.Name), x("architecture", i.Arch), x("imageState", "available"),
				x("imageOwnerAlias", "amazon"), x("imageOwnerId", "137112412989"), x("isPublic", true), x("imageType", "machine"),
				x("rootDeviceType", "ebs"), x("rootDeviceName", i.Device), x("virtualizationType", "hvm"), x("hypervisor", "xen"),
				x("platformDetails", "Linux/UNIX"), x("creationDate", "2026-01-01T00:00:00.000Z"), x("enaSupport", true),
				x("blockDeviceMapping", x("item", x("deviceName", i.Device), x("ebs", x("volumeSize", i.RootGB),
					x("volumeType", "gp3"), x("deleteOnTermination", true), x("snapshotId", "snap-"+hash([]byte(i.ID))[:17])))))
		})
}
