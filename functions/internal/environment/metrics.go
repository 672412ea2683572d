package environment

import (
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
)

// Observed is a guard option for lambdaidem.New. It counts the outcome of each call as a
// CloudWatch metric. Warnings are still logged.
func (e Environment) Observed(o *lambdaidem.Options) {
	o.Observer = lambdaidem.Observers(o.Observer, e.metrics)
}

// newMetrics returns an observer that writes the metrics to which the alarms and the
// dashboard of template.yaml refer. service must be the SERVICE_NAME that template.yaml
// sets. Under another name, no alarm would receive data.
//
// The metrics also contain the ids of records, so that the queries of template.yaml can
// find the history of a key in the log. An id is a hash and reveals neither key nor caller.
func newMetrics(service string) lambdaidem.Observer {
	return emf.New(func(o *emf.Options) { o.Service, o.Records = service, true })
}
