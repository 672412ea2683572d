package template

// nameProperty has the property with the name of a resource, by the resource's type. A resource
// without that property gets its logical ID as its name. CloudFormation would generate a name.
var nameProperty = map[string]string{
	"AWS::DynamoDB::Table":      "TableName",
	"AWS::Serverless::Function": "FunctionName",
	"AWS::SQS::Queue":           "QueueName",
	"AWS::Logs::LogGroup":       "LogGroupName",
	"AWS::IAM::Role":            "RoleName",
}

// physicalName returns the name of a resource, after [Options].Rename. Resources of types without
// a name property, such as APIs, are not renamed, because events refer to them by their logical
// IDs.
func (e *evaluator) physicalName(logicalID string, resource *node) (string, error) {
	name, err := e.templatesName(logicalID, resource)
	if _, named := nameProperty[typeOf(resource)]; err == nil && named && e.options.Rename != nil {
		name = e.options.Rename(typeOf(resource), name)
	}
	return name, err
}

func (e *evaluator) templatesName(logicalID string, resource *node) (string, error) {
	name := resource.field("Properties").field(nameProperty[typeOf(resource)])
	if name == nil {
		return e.generatedName(logicalID, resource)
	}
	resolving := "the name of " + logicalID
	if e.pending[resolving] {
		return "", errorAt(name, "%s refers to itself", resolving)
	}
	e.pending[resolving] = true
	defer delete(e.pending, resolving)
	value, err := e.value(name)
	if err != nil {
		return "", err
	}
	if value.kind == noValue {
		return e.generatedName(logicalID, resource)
	}
	return e.text(value, resolving)
}

// generatedName returns the name of a resource whose name property is absent: its logical ID,
// followed by .fifo for a FIFO queue.
func (e *evaluator) generatedName(logicalID string, resource *node) (string, error) {
	fifo := resource.field("Properties").field("FifoQueue")
	if typeOf(resource) != "AWS::SQS::Queue" || fifo == nil {
		return logicalID, nil
	}
	value, err := e.value(fifo)
	if err != nil {
		return "", err
	}
	if value.text == "true" {
		return logicalID + ".fifo", nil
	}
	return logicalID, nil
}

// queueURL returns the result of !Ref for a queue. The URL works with any endpoint, because the
// SDKs send it as a parameter to the endpoint that they are configured with.
func (e *evaluator) queueURL(name string) string {
	return "https://sqs." + e.options.Region + ".amazonaws.com/" + e.options.AccountID + "/" + name
}

func typeOf(resource *node) string {
	if kind := resource.field("Type"); kind != nil {
		return kind.text
	}
	return ""
}

// ARN returns an ARN in the partition aws. The Region or the account is empty for services whose
// ARNs have none. For example, a role has no Region.
func ARN(service, region, account, resource string) string {
	return "arn:aws:" + service + ":" + region + ":" + account + ":" + resource
}

// StreamARN returns the ARN that [Read] gives the stream of a table, given the ARN of the table.
// A real stream has its creation time in place of "local".
func StreamARN(table string) string { return table + "/stream/local" }

func (e *evaluator) arn(service, resource string) string {
	return ARN(service, e.options.Region, e.options.AccountID, resource)
}

func (e *evaluator) roleARN(name string) string {
	return ARN("iam", "", e.options.AccountID, "role/"+name)
}
