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
		"DescribeVolumes": describeVolumes,
	} {
		ec2[name] = do
	}
}
