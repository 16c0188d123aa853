package awstest

// ec2 are the actions of EC2 that this cloud knows.
var ec2 = map[string]func(*call) (*node, error){}

// sts are those of STS.
var sts = map[string]func(*call) (*node, error){}

func init() {
	for name, do := range map[string]func(*call) (*node, error){
		"RunInstances": runInstances, "DescribeInstances": describeInstances, "TerminateInstances": terminateInstances,
		"DescribeInstanceAttribute": describeInstanceAttribute, "GetConsoleOutput": getConsoleOutput,
		"CreateFleet": createFleet, "DescribeFleets": describeFleets, "DescribeFleetInstances": describeFleetInstances,
		"DeleteFleets": deleteFleets, "CreateLaunchTemplate": createLaunchTemplate,
		"CreateLaunchTemplateVersion": createLaunchTemplateVersion, "DescribeLaunchTemplates": describeLaunchTemplates,
		"DescribeLaunchTemplateVersions": describeLaunchTemplateVersions, "DeleteLaunchTemplate": deleteLaunchTemplate,
		"DescribeRegions": describeRegions, "DescribeAvailabilityZones": describeAvailabilityZones,
		"DescribeInstanceTypes": describeInstanceTypes, "DescribeInstanceTypeOfferings": describeInstanceTypeOfferings,
		"DescribeSpotPriceHistory": describeSpotPriceHistory, "GetSpotPlacementScores": getSpotPlacementScores,
		"DescribeImages": describeImages, "DescribeVpcs": describeVpcs, "DescribeSubnets": describeSubnets,
		"CreateSecurityGroup": createSecurityGroup, "DescribeSecurityGroups": describeSecurityGroups,
		"DeleteSecurityGroup": deleteSecurityGroup, "RevokeSecurityGroupEgress": revokeSecurityGroupEgress,
		"AuthorizeSecurityGroupIngress": authorizeSecurityGroupIngress,
		"DescribeVolumes":               describeVolumes, "DeleteVolume": deleteVolume,
		"DescribeNetworkInterfaces": describeNetworkInterfaces, "DeleteNetworkInterface": deleteNetworkInterface,
		"DescribeAddresses": describeAddresses, "ReleaseAddress": releaseAddress, "CreateTags": changeTags,
		"DeleteTags": changeTags, "DescribeTags": describeTags, "CreatePlacementGroup": createPlacementGroup,
		"DescribePlacementGroups": describePlacementGroups, "DeletePlacementGroup": deletePlacementGroup,
		"DescribeInstanceStatus": describeInstanceStatus, "DescribeSpotInstanceRequests": describeSpotInstanceRequests,
		"CancelSpotInstanceRequests":   cancelSpotInstanceRequests,
		"DescribeCapacityReservations": describeCapacityReservations,
		"CancelCapacityReservation":    cancelCapacityReservation,
		"DescribeReservedInstances":    describeReservedInstances, "DescribeAccountAttributes": describeAccountAttributes,
	} {
		ec2[name] = do
	}
	sts["GetCallerIdentity"], sts["AssumeRole"] = getCallerIdentity, assumeRole
}
