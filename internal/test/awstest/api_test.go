//go:build !local

package awstest_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"scrimp/internal/lib/awshttp"
	"scrimp/internal/test/awstest"
	"scrimp/internal/test/awstest/catalog"
	"scrimp/internal/test/must"
)

func TestDescribe_TypesAndZonesInPages(t *testing.T) {
	c := start(t, awstest.Options{Page: 5})
	ctx := t.Context()
	found := map[types.InstanceType]types.InstanceTypeInfo{}
	for p := ec2.NewDescribeInstanceTypesPaginator(c.ec2, &ec2.DescribeInstanceTypesInput{}); p.HasMorePages(); {
		page := get[*ec2.DescribeInstanceTypesOutput](t)(p.NextPage(ctx))
		if len(page.InstanceTypes) > 5 {
			t.Errorf("a page of %d", len(page.InstanceTypes))
		}
		for _, i := range page.InstanceTypes {
			found[i.InstanceType] = i
		}
	}
	g := found["g5.12xlarge"]
	if len(found) != len(catalog.Types()) || *g.VCpuInfo.DefaultVCpus != 48 || *g.MemoryInfo.SizeInMiB != 196608 ||
		*g.GpuInfo.Gpus[0].Count != 4 || *g.GpuInfo.Gpus[0].MemoryInfo.SizeInMiB != 24576 || !*g.NetworkInfo.EfaSupported ||
		*g.NetworkInfo.EfaInfo.MaximumEfaInterfaces != 1 || len(g.SupportedUsageClasses) != 2 ||
		g.PlacementGroupInfo.SupportedStrategies[0] != "cluster" || *g.InstanceStorageInfo.TotalSizeInGB != 3800 ||
		found["g5g.xlarge"].ProcessorInfo.SupportedArchitectures[0] != "arm64" {
		t.Errorf("%+v", g)
	}
	offers := 0
	for p := ec2.NewDescribeInstanceTypeOfferingsPaginator(c.ec2, &ec2.DescribeInstanceTypeOfferingsInput{
		LocationType: types.LocationTypeAvailabilityZone}); p.HasMorePages(); {
		offers += len(get[*ec2.DescribeInstanceTypeOfferingsOutput](t)(p.NextPage(ctx)).InstanceTypeOfferings)
	}
	prices := 0
	for p := ec2.NewDescribeSpotPriceHistoryPaginator(c.ec2, &ec2.DescribeSpotPriceHistoryInput{StartTime: aws.Time(c.at),
		ProductDescriptions: []string{"Linux/UNIX"}}); p.HasMorePages(); {
		prices += len(get[*ec2.DescribeSpotPriceHistoryOutput](t)(p.NextPage(ctx)).SpotPriceHistory)
	}
	if want := 3 * len(catalog.Types()); offers != want || prices != want {
		t.Errorf("%d offers, %d prices, want %d of each", offers, prices, want)
	}
	_, err := c.ec2.DescribeInstanceTypes(
		ctx,
		&ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"z9.nano"}},
	)
	if code(err) != "InvalidInstanceType" {
		t.Error(err)
	}
	regions := get[*ec2.DescribeRegionsOutput](t)(c.ec2.DescribeRegions(ctx, nil))
	zones := get[*ec2.DescribeAvailabilityZonesOutput](t)(c.ec2.DescribeAvailabilityZones(ctx, nil))
	images := get[*ec2.DescribeImagesOutput](t)(c.ec2.DescribeImages(ctx,
		&ec2.DescribeImagesInput{Owners: []string{"amazon"}}))
	vpcs := get[*ec2.DescribeVpcsOutput](t)(c.ec2.DescribeVpcs(ctx, nil))
	subnets := get[*ec2.DescribeSubnetsOutput](t)(c.ec2.DescribeSubnets(ctx,
		&ec2.DescribeSubnetsInput{Filters: []types.Filter{
			{Name: aws.String("availability-zone"), Values: []string{"us-east-1b"}}}}))
	if len(regions.Regions) != 3 || len(zones.AvailabilityZones) != 3 ||
		*zones.AvailabilityZones[0].ZoneId != "use1-az1" ||
		len(
			images.Images,
		) != 2 || *images.Images[0].BlockDeviceMappings[0].Ebs.VolumeSize != 8 || len(vpcs.Vpcs) != 1 ||
		len(subnets.Subnets) != 1 || *subnets.Subnets[0].VpcId != *vpcs.Vpcs[0].VpcId {
		t.Errorf("%+v %+v %+v %+v %+v", regions, zones, images, vpcs, subnets)
	}
	scores := get[*ec2.GetSpotPlacementScoresOutput](t)(c.ec2.GetSpotPlacementScores(ctx,
		&ec2.GetSpotPlacementScoresInput{
			InstanceTypes: []string{
				"g5.xlarge",
			}, TargetCapacity: aws.Int32(4), SingleAvailabilityZone: aws.Bool(true)}))
	if len(scores.SpotPlacementScores) == 0 || *scores.SpotPlacementScores[0].Score != 9 {
		t.Errorf("%+v", scores)
	}
}

func TestDescribeInstances_PagesAreStable(t *testing.T) {
	c := start(t, awstest.Options{})
	in := one("m7i.large")
	in.MinCount, in.MaxCount = aws.Int32(13), aws.Int32(13)
	for _, i := range c.run(t, in)[:2] {
		must.Do(t, c.Terminate(*i.InstanceId))
	}
	seen, pages := map[string]bool{}, 0
	for p := ec2.NewDescribeInstancesPaginator(c.ec2, &ec2.DescribeInstancesInput{MaxResults: aws.Int32(5)}); p.HasMorePages(); {
		for _, r := range get[*ec2.DescribeInstancesOutput](t)(p.NextPage(t.Context())).Reservations {
			for _, i := range r.Instances {
				if seen[*i.InstanceId] {
					t.Errorf("%s is listed twice", *i.InstanceId)
				}
				seen[*i.InstanceId] = true
			}
		}
		if pages++; pages == 1 {
			c.at = c.at.Add(time.Hour) // terminated instances are no longer listed
		}
	}
	if len(seen) != 13 || pages != 3 {
		t.Errorf("%d instances in %d pages", len(seen), pages)
	}
}

func TestLeftovers_CanBeFoundAndDeleted(t *testing.T) {
	c := start(t, awstest.Options{})
	ctx := t.Context()
	named := []types.TagSpecification{}
	for _, r := range []types.ResourceType{"instance", "volume", "network-interface"} {
		named = append(named, types.TagSpecification{ResourceType: r, Tags: []types.Tag{{Key: aws.String("by"),
			Value: aws.String("me")}}})
	}
	by := []types.Filter{{Name: aws.String("tag:by"), Values: []string{"me"}}}
	sg := get[*ec2.CreateSecurityGroupOutput](t)(c.ec2.CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{
		GroupName: aws.String("workers"), Description: aws.String("none")}))
	get[*ec2.RevokeSecurityGroupEgressOutput](
		t,
	)(
		c.ec2.RevokeSecurityGroupEgress(ctx, &ec2.RevokeSecurityGroupEgressInput{
			GroupId: sg.GroupId, IpPermissions: []types.IpPermission{{IpProtocol: aws.String("-1"),
				IpRanges: []types.IpRange{{CidrIp: aws.String("0.0.0.0/0")}}}}}),
	)
	get[*ec2.CreatePlacementGroupOutput](t)(c.ec2.CreatePlacementGroup(ctx, &ec2.CreatePlacementGroupInput{
		GroupName: aws.String("gang"), Strategy: types.PlacementStrategyCluster}))
	in := one("p4d.24xlarge")
	in.TagSpecifications, in.Placement = named, &types.Placement{GroupName: aws.String("gang")}
	in.BlockDeviceMappings = []types.BlockDeviceMapping{
		{DeviceName: aws.String("/dev/sdb"), Ebs: &types.EbsBlockDevice{
			VolumeSize: aws.Int32(100), VolumeType: types.VolumeTypeGp3, DeleteOnTermination: aws.Bool(false)}},
	}
	in.NetworkInterfaces = []types.InstanceNetworkInterfaceSpecification{{DeviceIndex: aws.Int32(0),
		InterfaceType: aws.String("efa"),
		Groups:        []string{*sg.GroupId}}, {DeviceIndex: aws.Int32(1), NetworkCardIndex: aws.Int32(1),
		DeleteOnTermination: aws.Bool(false), InterfaceType: aws.String("efa-only")}}
	id := *c.run(t, in)[0].InstanceId
	if got := c.see(t, id); len(got.NetworkInterfaces) != 2 || len(got.BlockDeviceMappings) != 2 ||
		*got.SecurityGroups[0].GroupId != *sg.GroupId {
		t.Errorf("%+v", got)
	}
	_, err := c.ec2.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: sg.GroupId})
	_, err2 := c.ec2.DeletePlacementGroup(ctx, &ec2.DeletePlacementGroupInput{GroupName: aws.String("gang")})
	if code(err) != "DependencyViolation" || code(err2) != "InvalidPlacementGroup.InUse" {
		t.Error(err, err2)
	}
	tagged := get[*ec2.DescribeTagsOutput](t)(c.ec2.DescribeTags(ctx, &ec2.DescribeTagsInput{Filters: []types.Filter{
		{Name: aws.String("key"), Values: []string{"b*"}}}}))
	if len(tagged.Tags) != 5 {
		t.Errorf("%+v", tagged)
	}
	get[*ec2.CreateTagsOutput](
		t,
	)(
		c.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: []types.Tag{
			{Key: aws.String("more"), Value: aws.String("1")}}}),
	)
	get[*ec2.DeleteTagsOutput](
		t,
	)(
		c.ec2.DeleteTags(ctx, &ec2.DeleteTagsInput{Resources: []string{id}, Tags: []types.Tag{
			{Key: aws.String("by")}}}),
	)
	if got := c.see(t, id); len(got.Tags) != 1 || *got.Tags[0].Key != "more" {
		t.Errorf("%+v", got.Tags)
	}
	must.Do(t, c.Terminate(id))
	volumes := get[*ec2.DescribeVolumesOutput](t)(c.ec2.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{Filters: by}))
	cards := get[*ec2.DescribeNetworkInterfacesOutput](t)(c.ec2.DescribeNetworkInterfaces(ctx,
		&ec2.DescribeNetworkInterfacesInput{Filters: by}))
	address := c.AddAddress("us-east-1", nil)
	addresses := get[*ec2.DescribeAddressesOutput](t)(c.ec2.DescribeAddresses(ctx, nil))
	if len(volumes.Volumes) != 1 || volumes.Volumes[0].State != "available" || len(cards.NetworkInterfaces) != 1 ||
		cards.NetworkInterfaces[0].Status != "available" || len(addresses.Addresses) != 1 {
		t.Fatalf("%+v %+v %+v", volumes, cards, addresses)
	}
	_, err = c.ec2.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: volumes.Volumes[0].VolumeId})
	_, err2 = c.ec2.DeleteNetworkInterface(ctx, &ec2.DeleteNetworkInterfaceInput{
		NetworkInterfaceId: cards.NetworkInterfaces[0].NetworkInterfaceId})
	_, err3 := c.ec2.ReleaseAddress(ctx, &ec2.ReleaseAddressInput{AllocationId: &address})
	_, err4 := c.ec2.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: sg.GroupId})
	_, err5 := c.ec2.DeletePlacementGroup(ctx, &ec2.DeletePlacementGroupInput{GroupName: aws.String("gang")})
	for _, err := range []error{err, err2, err3, err4, err5} {
		if err != nil {
			t.Error(err)
		}
	}
	if got := c.Left(); len(got) != 0 {
		t.Errorf("left: %+v", got)
	}
}

func TestActions_OthersAnswer(t *testing.T) {
	c := start(t, awstest.Options{})
	ctx := t.Context()
	lt := get[*ec2.CreateLaunchTemplateOutput](t)(c.ec2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("worker"), ClientToken: aws.String("a"),
		LaunchTemplateData: &types.RequestLaunchTemplateData{
			ImageId: aws.String(amd), InstanceType: "m7i.large", UserData: script("true")}}))
	get[*ec2.CreateLaunchTemplateVersionOutput](t)(c.ec2.CreateLaunchTemplateVersion(ctx,
		&ec2.CreateLaunchTemplateVersionInput{
			LaunchTemplateId: lt.LaunchTemplate.LaunchTemplateId, SourceVersion: aws.String("1"),
			LaunchTemplateData: &types.RequestLaunchTemplateData{InstanceType: "c7i.xlarge"}}))
	versions := get[*ec2.DescribeLaunchTemplateVersionsOutput](t)(c.ec2.DescribeLaunchTemplateVersions(ctx,
		&ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateName: aws.String("worker")}))
	if v := versions.LaunchTemplateVersions; len(v) != 2 || v[1].LaunchTemplateData.InstanceType != "c7i.xlarge" ||
		*v[1].LaunchTemplateData.ImageId != amd {
		t.Errorf("%+v", v)
	}
	i := c.run(t, &ec2.RunInstancesInput{MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
		LaunchTemplate: &types.LaunchTemplateSpecification{
			LaunchTemplateName: aws.String("worker"), Version: aws.String("$Latest")}})[0]
	attribute := get[*ec2.DescribeInstanceAttributeOutput](t)(c.ec2.DescribeInstanceAttribute(ctx,
		&ec2.DescribeInstanceAttributeInput{
			InstanceId: i.InstanceId, Attribute: types.InstanceAttributeNameUserData}))
	if i.InstanceType != "c7i.xlarge" || *attribute.UserData.Value != *script("true") {
		t.Errorf("%v %+v", i.InstanceType, attribute)
	}
	must.Do(t, c.Impair(*i.InstanceId))
	status := get[*ec2.DescribeInstanceStatusOutput](t)(c.ec2.DescribeInstanceStatus(ctx, nil))
	if s := status.InstanceStatuses; len(s) != 1 || s[0].SystemStatus.Status != "impaired" || len(s[0].Events) != 1 {
		t.Errorf("%+v", s)
	}
	c.Reserve("g5.xlarge", "us-east-1a", 2, true, c.at, c.at.Add(time.Hour))
	c.Reserve("g5.xlarge", "us-east-1a", 1, false, c.at, c.at.AddDate(1, 0, 0))
	held := get[*ec2.DescribeCapacityReservationsOutput](t)(c.ec2.DescribeCapacityReservations(ctx, nil))
	reserved := get[*ec2.DescribeReservedInstancesOutput](t)(c.ec2.DescribeReservedInstances(ctx, nil))
	account := get[*ec2.DescribeAccountAttributesOutput](t)(c.ec2.DescribeAccountAttributes(ctx, nil))
	if len(held.CapacityReservations) != 1 || *held.CapacityReservations[0].AvailableInstanceCount != 2 ||
		len(reserved.ReservedInstances) != 1 || len(account.AccountAttributes) == 0 {
		t.Errorf("%+v %+v %+v", held, reserved, account)
	}
	fleet := get[*ec2.CreateFleetOutput](t)(c.ec2.CreateFleet(ctx, &ec2.CreateFleetInput{Type: types.FleetTypeInstant,
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{
			{LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{
				LaunchTemplateId: lt.LaunchTemplate.LaunchTemplateId, Version: aws.String("1")}},
		},
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{TotalTargetCapacity: aws.Int32(3),
			DefaultTargetCapacityType: types.DefaultTargetCapacityTypeOnDemand}}))
	fleets := get[*ec2.DescribeFleetsOutput](t)(c.ec2.DescribeFleets(ctx,
		&ec2.DescribeFleetsInput{FleetIds: []string{*fleet.FleetId}}))
	none := get[*ec2.DescribeFleetsOutput](t)(c.ec2.DescribeFleets(ctx, nil))
	active := get[*ec2.DescribeFleetInstancesOutput](t)(c.ec2.DescribeFleetInstances(ctx,
		&ec2.DescribeFleetInstancesInput{FleetId: fleet.FleetId}))
	if len(fleets.Fleets) != 1 || len(none.Fleets) != 0 || len(active.ActiveInstances) != 3 {
		t.Errorf("%+v %+v %+v", fleets, none, active)
	}
	gone := get[*ec2.DeleteFleetsOutput](t)(c.ec2.DeleteFleets(ctx,
		&ec2.DeleteFleetsInput{TerminateInstances: aws.Bool(true),
			FleetIds: []string{*fleet.FleetId, "fleet-0"}}))
	if len(gone.SuccessfulFleetDeletions) != 1 || len(gone.UnsuccessfulFleetDeletions) != 1 {
		t.Errorf("%+v", gone)
	}
	sp := c.run(t, spot("m7i.large", ""))[0]
	get[*ec2.CancelSpotInstanceRequestsOutput](t)(c.ec2.CancelSpotInstanceRequests(ctx,
		&ec2.CancelSpotInstanceRequestsInput{
			SpotInstanceRequestIds: []string{*sp.SpotInstanceRequestId}}))
	requests := get[*ec2.DescribeSpotInstanceRequestsOutput](t)(c.ec2.DescribeSpotInstanceRequests(ctx, nil))
	if r := requests.SpotInstanceRequests[0]; r.State != "cancelled" ||
		*r.Status.Code != "request-canceled-and-instance-running" {
		t.Errorf("%+v", r)
	}
	get[*ec2.DeleteLaunchTemplateOutput](t)(c.ec2.DeleteLaunchTemplate(ctx,
		&ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String("worker")}))
	if got := get[*ec2.DescribeLaunchTemplatesOutput](t)(c.ec2.DescribeLaunchTemplates(ctx,
		nil)); len(got.LaunchTemplates) != 0 {
		t.Errorf("%+v", got)
	}
	groups := get[*ec2.DescribeSecurityGroupsOutput](t)(c.ec2.DescribeSecurityGroups(ctx, nil))
	places := get[*ec2.DescribePlacementGroupsOutput](t)(c.ec2.DescribePlacementGroups(ctx, nil))
	if len(groups.SecurityGroups) != 1 || len(places.PlacementGroups) != 0 {
		t.Errorf("%+v %+v", groups, places)
	}
}

// BenchmarkDescribe_LargeAccount lists a whole account: 1,300 types in 90 zones of 30 regions.
func BenchmarkDescribe_LargeAccount(b *testing.B) {
	types1300, zones := catalog.Large(1300, 90)
	s, err := awstest.New(awstest.Options{Types: types1300, Zones: zones})
	must.Do(b, err)
	defer s.Close()
	c := &cloud{Server: s}
	for b.Loop() {
		n := 0
		for region := 1; region <= 30; region++ {
			client := ec2.New(
				ec2.Options{
					HTTPClient:   awshttp.Client(),
					Region:       zones[(region-1)*3].Region,
					BaseEndpoint: &s.URL,
					Credentials:  c.keys(),
				},
			)
			for p := ec2.NewDescribeInstanceTypeOfferingsPaginator(client, &ec2.DescribeInstanceTypeOfferingsInput{
				LocationType: types.LocationTypeAvailabilityZone}); p.HasMorePages(); {
				page, err := p.NextPage(b.Context())
				must.Do(b, err)
				n += len(page.InstanceTypeOfferings)
			}
		}
		if n != 1300*90 {
			b.Fatalf("%d offerings", n)
		}
		b.ReportMetric(float64(n), "offerings/op")
	}
}
