package awstest

import (
	"encoding/base64"
	"slices"

	"scrimp/internal/test/awstest/catalog"
)

// A spec describes an instance to launch, as in RunInstances and launch templates.
type spec struct {
	image, typ, key, userData  string
	subnet, zone, group        string
	tenancy, profile           string
	groups                     []string
	spot                       bool
	max                        int64 // spot price; 0: none
	interruption               string
	shutdown                   string // terminate or stop
	tokens                     string
	protected                  *bool // disableApiTermination
	public                     *bool
	tags                       []tagSpec
	disks                      []disk
	cards                      []cardSpec
	capacityReservation        string
	spotType                   string
	market                     bool // the request has market options
	block                      bool // for a Capacity Block
	hops                       int
	ebsOptimized, monitoring   *bool
	reservationPreference, arn string
	held                       *reservation // reservation to launch into, set by the check
}

type disk struct {
	device, typ, snapshot string
	gb                    int
	keep                  bool // DeleteOnTermination false
	encrypted             bool
}

type cardSpec struct {
	index, network  int
	kind, subnet    string
	groups          []string
	keep            bool
	existing        string
	publicRequested *bool
}

type tagSpec struct {
	resource string
	tags     tags
}

// spec parses a launch: of RunInstances, or of a template's data, which have the same names.
func (c *call) spec(p params) (d spec) {
	d = spec{image: p.str("ImageId"), typ: p.str("InstanceType"), key: p.str("KeyName"), userData: p.str("UserData"),
		shutdown: p.oneOf("InstanceInitiatedShutdownBehavior", "stop", "terminate"), groups: p.list("SecurityGroupId"),
		tags: c.tagSpecs(p)}
	if raw, err := base64.StdEncoding.DecodeString(d.userData); err != nil {
		p.fail(bad("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data."))
	} else if len(raw) > 16384 {
		p.fail(bad("InvalidParameterValue", "User data is limited to 16384 bytes"))
	}
	place := p.sub("Placement")
	d.zone, d.group = place.str("AvailabilityZone"), place.str("GroupName")
	d.tenancy = place.oneOf("Tenancy", "default")
	d.protected, d.ebsOptimized = p.optional("DisableApiTermination"), p.optional("EbsOptimized")
	d.monitoring = p.sub("Monitoring").optional("Enabled")
	d.profile, d.arn = p.sub("IamInstanceProfile").str("Name"), p.sub("IamInstanceProfile").str("Arn")
	meta := p.sub("MetadataOptions")
	d.tokens = meta.oneOf("HttpTokens", "optional", "required")
	meta.oneOf("HttpEndpoint", "enabled")
	meta.oneOf("InstanceMetadataTags", "disabled", "enabled")
	meta.oneOf("HttpProtocolIpv6", "disabled")
	d.hops = meta.number("HttpPutResponseHopLimit", 0)
	hold := p.sub("CapacityReservationSpecification")
	d.reservationPreference = hold.oneOf("CapacityReservationPreference", "open", "none", reservedOnly)
	d.capacityReservation = hold.sub("CapacityReservationTarget").str("CapacityReservationId")
	c.marketOptions(p.sub("InstanceMarketOptions"), &d)
	for _, b := range p.each("BlockDeviceMapping") {
		d.disks = append(d.disks, readDisk(b))
	}
	for _, n := range p.each("NetworkInterface") {
		d.cards = append(d.cards, readCard(n))
	}
	return d
}

func (p params) optional(name string) *bool {
	if !p.has(name) {
		return nil
	}
	v := p.flag(name, false)
	return &v
}

func (c *call) marketOptions(p params, d *spec) {
	if !p.present() {
		return
	}
	kind := p.oneOf("MarketType", "spot", "capacity-block")
	d.market, d.spot, d.block = true, kind == "spot", kind == "capacity-block"
	o := p.sub("SpotOptions")
	d.max = c.maxPrice(o)
	d.interruption = o.oneOf("InstanceInterruptionBehavior", "terminate") // stop and hibernate are not supported
	d.spotType = o.oneOf("SpotInstanceType", "one-time")
}

func (c *call) maxPrice(p params) int64 {
	text := p.str("MaxPrice")
	if text == "" {
		return 0
	}
	n, err := catalog.ParsePrice(text)
	if err != nil || n <= 1e9 {
		p.fail(bad("InvalidParameterValue", "The maximum price %q must be more than USD $0.001", text))
	}
	return n
}

func readDisk(p params) disk {
	e := p.sub("Ebs")
	return disk{device: p.must("DeviceName"), typ: e.oneOf("VolumeType", "gp2", "gp3", "io1", "io2", "st1", "sc1",
		"standard"),
		gb: e.number("VolumeSize", 0), keep: !e.flag("DeleteOnTermination", true), encrypted: e.flag("Encrypted", false),
		snapshot: e.str("SnapshotId") + ignore(e, "Iops", "Throughput", "KmsKeyId")}
}

// ignore reads parameters without any visible effect in this cloud.
func ignore(p params, names ...string) string {
	for _, n := range names {
		p.str(n)
	}
	return ""
}

func readCard(p params) cardSpec {
	return cardSpec{index: p.number("DeviceIndex", 0), network: p.number("NetworkCardIndex", 0),
		kind: p.oneOf("InterfaceType", "interface", "efa", "efa-only"), subnet: p.str("SubnetId"),
		groups: p.list("SecurityGroupId"), keep: !p.flag("DeleteOnTermination", true), existing: p.str("NetworkInterfaceId"),
		publicRequested: p.optional("AssociatePublicIpAddress")}
}

// tagSpecs parses the tags for the resources that a request creates.
func (c *call) tagSpecs(p params) (list []tagSpec) {
	for _, t := range p.each("TagSpecification") {
		list = append(list, tagSpec{t.must("ResourceType"), readTags(t)})
	}
	return list
}

func tagsFor(specs []tagSpec, resource string) tags {
	t := tags{}
	for _, s := range specs {
		if s.resource == resource {
			for k, v := range s.tags {
				t[k] = v
			}
		}
	}
	return t
}

// over returns d overridden by o, as for an override, or RunInstances over a template.
func (d spec) over(o spec) spec {
	for to, from := range map[*string]string{&d.image: o.image, &d.typ: o.typ, &d.key: o.key, &d.userData: o.userData,
		&d.subnet: o.subnet, &d.zone: o.zone, &d.group: o.group, &d.tenancy: o.tenancy, &d.profile: o.profile,
		&d.arn: o.arn, &d.shutdown: o.shutdown, &d.tokens: o.tokens, &d.capacityReservation: o.capacityReservation,
		&d.reservationPreference: o.reservationPreference} {
		if from != "" {
			*to = from
		}
	}
	if o.groups != nil {
		d.groups = o.groups
	}
	if o.market {
		d.market, d.spot, d.max, d.interruption, d.spotType = true, o.spot, o.max, o.interruption, o.spotType
		d.block = o.block
	}
	for to, from := range map[**bool]*bool{&d.protected: o.protected, &d.ebsOptimized: o.ebsOptimized,
		&d.monitoring: o.monitoring, &d.public: o.public} {
		if from != nil {
			*to = from
		}
	}
	if o.hops > 0 {
		d.hops = o.hops
	}
	d.tags = append(slices.Clone(d.tags), o.tags...)
	for _, n := range o.disks {
		d.disks = slices.DeleteFunc(slices.Clone(d.disks), func(b disk) bool { return b.device == n.device })
		d.disks = append(d.disks, n)
	}
	if o.cards != nil {
		d.cards = o.cards
	}
	return d
}
