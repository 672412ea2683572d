package template

func (p properties) events(f *Function) error {
	events, ok, err := p.inner("Events")
	if err != nil || !ok {
		return err
	}
	for _, name := range events.node.keys {
		event, _, err := events.inner(name)
		if err != nil {
			return err
		}
		kind, err := event.text("Type", "")
		if err != nil {
			return err
		}
		given, _, err := event.inner("Properties")
		if err != nil {
			return err
		}
		if err := given.event(f, name, kind); err != nil {
			return err
		}
	}
	return nil
}

// event reads the properties of one event.
func (p properties) event(f *Function, name, kind string) error {
	routes := map[string]func() (Route, error){"HttpApi": p.httpAPIRoute, "Api": p.restAPIRoute}
	sources := map[string]func(string) (Source, error){"SQS": p.queueSource, "DynamoDB": p.streamSource}
	if read := routes[kind]; read != nil {
		route, err := read()
		f.Routes = append(f.Routes, route)
		return err
	}
	if read := sources[kind]; read != nil && !p.isElsewhere() {
		source, err := read(name)
		f.Sources = append(f.Sources, source)
		return err
	}
	f.OtherEvents = append(f.OtherEvents, name+" ("+kind+")")
	return nil
}
