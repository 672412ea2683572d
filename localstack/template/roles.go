package template

import (
	"strings"
)

// Role is the execution role of a function, with the policies that the template gives the role.
type Role struct {
	Name       string      // RoleName or logical ID of an AWS::IAM::Role; for a role that SAM makes, the function's logical ID and "Role"
	ARN        string      // arn:PARTITION:iam::ACCOUNT:role/NAME
	Statements []Statement // of all policies that a local run knows

	// Unknown has the reasons why the role may allow more than Statements do: only AWS knows
	// a policy of the role, or the role itself. It is empty if the template says everything.
	Unknown []string
}

// role reads the execution role of a function. A function without the property Role has the
// role that SAM makes ("AWS::Serverless::Function", properties Role and Policies).
func (p properties) role(logicalID string, resource *node) Role {
	given := p.reader.branch(p.node.field("Role"))
	if given == nil {
		return p.samRole(logicalID, resource)
	}
	value, why := p.reader.known(given)
	if why != "" {
		return Role{Name: logicalID + "Role", ARN: p.reader.roleARN(logicalID + "Role"), Unknown: []string{"its role is known only to AWS: " + why}}
	}
	for _, id := range p.reader.resources.keys {
		role := p.reader.resources.fields[id]
		if typeOf(role) != "AWS::IAM::Role" {
			continue
		}
		name := ""
		unknown := p.reader.optional(func() (err error) {
			name, err = p.reader.physicalName(id, role)
			return err
		})
		if unknown == "" && p.reader.roleARN(name) == value.text {
			return p.reader.ownRole(id, name, role)
		}
	}
	return Role{
		Name: value.text[strings.LastIndex(value.text, "/")+1:], ARN: value.text,
		Unknown: []string{"its role " + value.text + " is not a resource of this template"},
	}
}

// ownRole reads a resource of type AWS::IAM::Role, and the policies that other resources attach
// to it.
func (r *reader) ownRole(logicalID, name string, role *node) Role {
	out := &policies{reader: r, role: Role{Name: name, ARN: r.roleARN(name)}}
	given := role.field("Properties")
	for _, policy := range r.entries(given.field("Policies")) {
		out.document(r.nameOf(policy, "PolicyName"), policy.field("PolicyDocument"))
	}
	for _, managed := range r.entries(given.field("ManagedPolicyArns")) {
		out.managed(managed)
	}
	if boundary := r.branch(given.field("PermissionsBoundary")); boundary != nil {
		out.limited(logicalID, boundary)
	}
	for _, id := range r.resources.keys {
		policy := r.resources.fields[id]
		given := policy.field("Properties")
		switch typeOf(policy) {
		case "AWS::IAM::Policy", "AWS::IAM::ManagedPolicy":
			if r.names(given.field("Roles"), name) {
				out.attached(id, policy)
			}
		case "AWS::IAM::RolePolicy":
			if r.names(given.field("RoleName"), name) {
				out.attached(id, policy)
			}
		}
	}
	return out.role
}

// samRole returns the role that SAM makes for a function. SAM adds policies for the function's
// logs, for events from queues and streams, and for destinations that are queues.
func (p properties) samRole(logicalID string, resource *node) Role {
	r, name := p.reader, logicalID+"Role"
	out := &policies{reader: r, role: Role{Name: name, ARN: r.roleARN(name)}}
	for _, policy := range r.entries(p.node.field("Policies")) {
		out.ofSAM(policy)
	}
	out.awsManaged(resource, "AWSLambdaBasicExecutionRole")
	events := r.branch(p.node.field("Events"))
	if events != nil && events.kind == mapping {
		for _, id := range events.keys {
			event := r.branch(events.fields[id])
			switch kind := r.nameOf(event, "Type"); kind {
			case "SQS":
				out.awsManaged(event, "AWSLambdaSQSQueueExecutionRole")
			case "DynamoDB":
				out.awsManaged(event, "AWSLambdaDynamoDBExecutionRole")
			}
			out.destination(event.field("Properties").field("DestinationConfig").field("OnFailure"), "Destination")
		}
	}
	out.destination(p.node.field("DeadLetterQueue"), "TargetArn")
	for _, outcome := range []string{"OnSuccess", "OnFailure"} {
		out.destination(p.node.field("EventInvokeConfig").field("DestinationConfig").field(outcome), "Destination")
	}
	if boundary := r.branch(p.node.field("PermissionsBoundary")); boundary != nil {
		out.limited(logicalID, boundary)
	}
	if connected := r.connectors(logicalID, resource); connected != nil {
		out.unknown(connected, "SAM adds policies for its connectors")
	}
	return out.role
}

// connectors returns the resource or attribute by which SAM connects a function to another
// resource, or nil.
func (r *reader) connectors(logicalID string, resource *node) *node {
	if own := resource.field("Connectors"); own != nil {
		return own
	}
	for _, id := range r.resources.keys {
		connector := r.resources.fields[id]
		if typeOf(connector) == "AWS::Serverless::Connector" && r.nameOf(connector.field("Properties").field("Source"), "Id") == logicalID {
			return connector
		}
	}
	return nil
}
