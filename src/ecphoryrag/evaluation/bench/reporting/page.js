"use strict";
const AT_A_TIME = 50;
const WORDS = { right: "✓ right", partly: "◐ partly", wrong: "✗ wrong" };
const make = (tag, kind, ...children) => {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  element.append(...children.filter((child) => child !== null));
  return element;
};
const listed = (parts) => parts.join("; ");

const attempt = (data, gold, each) => {
  const [column, verdict, figures, answer, reasoning, problems, retrieved, shown, entities, cited, cost] = each;
  const box = make("section", `try ${verdict}`, make("h4", "", data.columns[column], " ", make("b", "", WORDS[verdict])));
  if (answer !== false) {
    const said = answer === null ? make("i", "", "none") : make("strong", "", answer);
    box.append(make("p", "", "Answer: ", said,
      cited.length ? make("span", "faint", ` by evidence ${cited.join(", ")}`) : null));
  }
  if (reasoning) box.append(make("p", "", reasoning));
  for (const problem of problems) box.append(make("p", "problem", problem));
  if (retrieved.length) {
    const list = make("ol", "");
    for (const place of retrieved) {
      const item = make("li", gold.includes(place) ? "gold" : "", gold.includes(place) ? "✓ " : "", data.documents[place][0]);
      if (shown.includes(place)) item.append(" ", make("span", "faint", "(read)"));
      list.append(item);
    }
    box.append(list);
  }
  const missed = retrieved.length || answer === false ? gold.filter((place) => !retrieved.includes(place)) : [];
  if (missed.length) {
    box.append(make("p", "missed", `Gold not retrieved: ${listed(missed.map((place) => data.documents[place][0]))}`));
  }
  if (entities.length) box.append(make("p", "faint", `Entities the reader was given: ${listed(entities)}`));
  box.append(make("p", "faint", [figures, cost].filter(Boolean).join("; ")));
  return box;
};

const inside = (data, question) => {
  const [, id, text, answers, type, gold, , tried] = question;
  const parts = [];
  if (text) {
    const line = make("p", "");
    if (answers.length) {
      line.append("Accepted: ");
      answers.forEach((answer, place) => line.append(place ? " or " : "", make("strong", "", answer)));
      line.append(". ");
    }
    line.append(make("span", "faint", type ? `${id}, ${type}` : id));
    parts.push(line);
  } else {
    parts.push(make("p", "faint", "The run’s folder has no texts of this question and its passages: ids are shown."));
  }
  const list = make("ul", "");
  for (const place of gold) {
    const [title, passage] = data.documents[place];
    list.append(make("li", "", make("span", "gold", `✓ ${title}`), passage ? make("blockquote", "", passage) : null));
  }
  parts.push(make("p", "", "Gold:"), list, make("div", "tries", ...tried.map((each) => attempt(data, gold, each))));
  const others = [...new Set(tried.flatMap((each) => each[7]))].filter(
    (place) => !gold.includes(place) && data.documents[place][1]);
  if (others.length) {
    const more = make("details", "", make("summary", "", "Other passages that readers were given"));
    for (const place of others) {
      const [title, passage] = data.documents[place];
      more.append(make("p", "", make("b", "", title)), make("blockquote", "", passage));
    }
    parts.push(more);
  }
  return parts;
};

const line = (data, question) => {
  const [set, id, text, , , , results, tried] = question;
  const right = Array.from(results).filter((each) => each === "2").length;
  const summary = make("summary", "", make("span", "set", data.sets[set]), " ", text || id, " ",
    make("span", "score", `${right} of ${tried.length} right`));
  const details = make("details", "q", summary);
  details.addEventListener("toggle", () => details.append(...inside(data, question)), { once: true });
  return details;
};

for (const part of document.querySelectorAll(".browser")) {
  const source = part.querySelector("script.data");
  if (!source) continue;
  const data = JSON.parse(source.textContent);
  const form = part.querySelector(".filter");
  const list = part.querySelector(".questions");
  const more = part.querySelector(".more");
  const count = form.querySelector("output");
  const texts = data.questions.map(([set, id, text]) => `${data.sets[set]} ${text || id}`.toLowerCase());
  let found = [];
  let shown = 0;
  const show = () => {
    const next = found.slice(shown, shown + AT_A_TIME);
    list.append(...next.map((place) => line(data, data.questions[place])));
    shown += next.length;
    more.hidden = shown === found.length;
    count.textContent = `${found.length} of ${data.questions.length} questions`
      + (shown < found.length ? `, the first ${shown} shown` : "");
  };
  const fits = (results, method, wanted) => {
    if (method === "" || wanted === "") return true;
    const result = results[Number(method)];
    return wanted === "right" ? result === "2" : result !== "2" && result !== "-";
  };
  const filter = () => {
    const value = (name) => form.querySelector(`[name=${name}]`).value;
    const words = value("words").toLowerCase().split(/\s+/).filter(Boolean);
    const set = value("set");
    found = [];
    data.questions.forEach((question, place) => {
      const keep = (set === "" || set === String(question[0]))
        && words.every((word) => texts[place].includes(word))
        && fits(question[6], value("first"), value("first-is"))
        && fits(question[6], value("second"), value("second-is"));
      if (keep) found.push(place);
    });
    list.replaceChildren();
    shown = 0;
    show();
  };
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", show);
  form.hidden = false;
  filter();
}
