package environment

import (
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
)

// Observed is an option of every guard here: what comes of each call is a CloudWatch
// metric too, and warnings go on to the log.
func (e Environment) Observed(o *lambdaidem.Options) {
	o.Observer = lambdaidem.Observers(o.Observer, e.metrics)
}

// newMetrics counts for the alarms and the dashboard of template.yaml, which have the
// same names. Without SERVICE_NAME it would count under another one, and every alarm
// would be silent: hence it is required.
//
// The records' ids are for the queries of template.yaml: with them a key's history can
// be read from the log. They are hashes, and tell nothing of a key or a caller.
func newMetrics(service string) lambdaidem.Observer {
	return emf.New(func(o *emf.Options) { o.Service, o.Records = service, true })
}
