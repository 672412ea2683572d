package template

func (e *evaluator) getAtt(n *node) (*node, error) {
	args, err := e.arguments(n, 2)
	if err != nil {
		return nil, err
	}
	name, err := e.text(args[0], "the resource of !GetAtt")
	if err != nil {
		return nil, err
	}
	attribute, err := e.text(args[1], "the attribute of !GetAtt")
	if err != nil {
		return nil, err
	}
	return e.attribute(n, name, attribute)
}

func (e *evaluator) attribute(at *node, name, attribute string) (*node, error) {
	resource := e.resources.field(name)
	if resource == nil {
		return nil, errorAt(at, "%s is not a resource of this template", name)
	}
	physical, err := e.physicalName(name, resource)
	if err != nil {
		return nil, err
	}
	switch typeOf(resource) + "." + attribute {
	case "AWS::DynamoDB::Table.Arn":
		return textNode(e.arn("dynamodb", "table/"+physical)), nil
	case "AWS::Serverless::Function.Arn":
		return textNode(e.arn("lambda", "function:"+physical)), nil
	case "AWS::SQS::Queue.Arn":
		return textNode(e.arn("sqs", physical)), nil
	case "AWS::DynamoDB::Table.StreamArn":
		return textNode(StreamARN(e.arn("dynamodb", "table/"+physical))), nil
	case "AWS::SQS::Queue.QueueName":
		return textNode(physical), nil
	case "AWS::SQS::Queue.QueueUrl":
		return textNode(e.queueURL(physical)), nil
	case "AWS::Logs::LogGroup.Arn":
		return textNode(e.arn("logs", "log-group:"+physical+":*")), nil
	case "AWS::IAM::Role.Arn":
		return textNode(e.roleARN(physical)), nil
	}
	return nil, errorAt(at, "attribute %s of %s (%s) is not known in a local run", attribute, name, typeOf(resource))
}
