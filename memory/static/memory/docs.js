"use strict";

const target = document.getElementById("swagger-ui");

SwaggerUIBundle({
  url: target.dataset.schema,
  domNode: target,
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  deepLinking: true,
  // groups are closed: the page opens on the quickstart and a table of contents
  docExpansion: "none",
  filter: true,
  defaultModelsExpandDepth: -1,
  // the key is asked for once a visit, and never stored
  persistAuthorization: false,
});
