package awstest

// ec2 maps the supported actions of EC2 to their handlers.
var ec2 = map[string]func(*call) (*node, error){}

// sts maps the supported actions of STS to their handlers.
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
