package work

// What an agent may say, at most; in bytes, where no number of entries is meant.
const (
	maxSummary  = 256 << 10
	maxSaid     = 64 << 10 // a question, a roadblock, a finding, a piece of evidence
	maxBlockers = 100
)

func (q Question) check() error {
	if len(q.Options) > maxItems {
		return Errorf(Invalid, "%d options, at most %d are taken", len(q.Options), maxItems)
	}
	for _, text := range append([]string{q.Text}, q.Options...) {
		if err := checkLength("the question", text, maxSaid); err != nil {
			return err
		}
	}
	return nil
}

func (c Report) check(t *Task) error {
	if err := checkLength("the summary", c.Summary, maxSummary); err != nil {
		return err
	}
	if err := checkLength("the roadblock", c.Blocker, maxSaid); err != nil {
		return err
	}
	if c.Blocker != "" && len(t.Blockers) >= maxBlockers {
		return Errorf(Exhausted, "%d roadblocks are reported already", len(t.Blockers)).WithReason("too_many").WithHint("say the rest in the summary")
	}
	if c.Verdict == nil {
		return nil
	}
	return c.Verdict.check()
}

func (v *Verdict) check() error {
	if n := max(len(v.Criteria), len(v.Findings), len(v.Evidence)); n > maxItems {
		return Errorf(Invalid, "a list of the verdict has %d entries, at most %d are taken", n, maxItems)
	}
	if err := checkLength("the reasoning", v.Reasoning, maxSummary); err != nil {
		return err
	}
	for _, f := range v.Findings {
		if err := checkLength("a finding", f.Text+f.File+f.Kind, maxSaid); err != nil {
			return err
		}
	}
	for _, e := range v.Evidence {
		if err := checkLength("a piece of evidence", e.Command+e.Output, maxSaid); err != nil {
			return err
		}
	}
	for _, c := range v.Criteria {
		if err := checkLength("a criterion", c.Criterion+c.How, maxSaid); err != nil {
			return err
		}
	}
	return nil
}

func checkLength(what, text string, most int) error {
	if len(text) > most {
		return Errorf(Invalid, "%s is %d bytes long, at most %d are taken", what, len(text), most).WithHint("shorten it; long output belongs into the log")
	}
	return nil
}
